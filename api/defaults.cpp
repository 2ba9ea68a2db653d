#include "api/defaults.h"

namespace hetero::api {
namespace {

template <typename T>
void Fill(std::optional<T>& field, T value) {
  if (!field.has_value()) field = value;
}

// The values of torchvision.transforms.v2's constructors.
void DefaultOperator(OperatorSpec& op) {
  switch (op.op) {
    case OperatorKind::kResize:
      Fill(op.interpolation, Interpolation::kBilinear);
      break;
    case OperatorKind::kRandomResizedCrop:
      Fill(op.interpolation, Interpolation::kBilinear);
      Fill(op.scale, Range{0.08, 1.0});
      Fill(op.ratio, Range{3.0 / 4.0, 4.0 / 3.0});
      break;
    case OperatorKind::kHorizontalFlip:
    case OperatorKind::kVerticalFlip:
      Fill(op.probability, 0.5);
      break;
    case OperatorKind::kGrayscale:
      // Without certainty the shape has to stay, as in RandomGrayscale.
      Fill(op.probability, 1.0);
      Fill(op.output_channels, *op.probability < 1.0 ? 3 : 1);
      break;
    case OperatorKind::kGaussianBlur:
      Fill(op.sigma, Range{0.1, 2.0});
      break;
    case OperatorKind::kRandomErasing:
      Fill(op.probability, 0.5);
      Fill(op.scale, Range{0.02, 0.33});
      Fill(op.ratio, Range{0.3, 3.3});
      Fill(op.value, 0.0);
      break;
    case OperatorKind::kRotate:
      Fill(op.interpolation, Interpolation::kNearest);
      break;
    case OperatorKind::kRandAugment:
      Fill(op.operations, 2);
      Fill(op.magnitude, 9);
      break;
    case OperatorKind::kDecode:
    case OperatorKind::kCenterCrop:
    case OperatorKind::kColorJitter:
    case OperatorKind::kNormalize:
    case OperatorKind::kCast:
    case OperatorKind::kDelay:
    case OperatorKind::kPlugin:
      break;
  }
}

void DefaultRole(Role& role) {
  switch (role.type) {
    case RoleType::kHead:
      break;
    case RoleType::kCpuWorker:
      Fill(role.min_replicas, role.replicas);
      Fill(role.max_replicas, role.replicas);
      break;
    case RoleType::kGpuWorker:
      Fill(role.gpus_per_replica, 1);
      break;
  }
}

}  // namespace

void Default(HeteroTrainingJob& job) {
  for (OperatorSpec& op : job.spec.pipeline) DefaultOperator(op);
  for (Role& role : job.spec.roles) DefaultRole(role);
}

}  // namespace hetero::api
