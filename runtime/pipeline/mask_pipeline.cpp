#include "runtime/pipeline/mask_pipeline.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/operators.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "runtime/job/philox.h"
#include "runtime/pipeline/decode.h"
#include "runtime/pipeline/operator_factory.h"
#include "runtime/pipeline/scratch.h"

namespace hetero::pipeline {
namespace {

absl::StatusOr<api::Size> PictureSize(const source::RawSample& sample) {
  switch (sample.encoding) {
    case source::Encoding::kRaw:
      return api::Size{sample.shape.height, sample.shape.width};
    case source::Encoding::kJpeg:
      return JpegSize(sample.bytes);
    case source::Encoding::kPng:
      return PngSize(sample.bytes);
  }
  return absl::InternalError("unknown encoding");
}

// Operators put 0 where they look beyond the picture. They move values and make none, so that a
// mask whose `fill` was made 0, and back, has it there.
void Exchange(uint8_t fill, std::span<uint8_t> values) {
  if (fill == 0) return;
  for (uint8_t& value : values) value ^= fill;
}

struct TwoMasks {
  Image images[2];
  KeptBuffer kept[2] = {KeptBuffer(&images[0].bytes), KeptBuffer(&images[1].bytes)};
};

TwoMasks& MaskScratch() {
  static thread_local TwoMasks scratch;
  return scratch;
}

}  // namespace

absl::Status MaskPipeline::Add(const api::OperatorSpec& given, int32_t position, job::Split split,
                               api::ImageShape* shape) {
  const bool also = std::find(given.also.begin(), given.also.end(), name_) != given.also.end();
  const api::Geometry geometry = api::GeometryOf(given.op);
  if (geometry == api::Geometry::kStays) return absl::OkStatus();
  if (geometry == api::Geometry::kUnknown || !also) {
    return absl::InvalidArgumentError(
        absl::StrCat("moves the picture's pixels and not those of the field ", name_));
  }
  api::OperatorSpec spec = given;
  api::FillDefaults(spec);
  if (spec.interpolation) spec.interpolation = api::Interpolation::kNearest;
  const OperatorContext context{split, base::Clock::Real()};
  for (int32_t repeat = 0; repeat < spec.repeat; ++repeat) {
    HETERO_ASSIGN_OR_RETURN(Operators operators, MakeOperators(spec, context));
    for (std::unique_ptr<Operator>& op : operators) {
      HETERO_ASSIGN_OR_RETURN(*shape, op->OutputShape(*shape));
      stages_.push_back({std::move(op), position + repeat});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<MaskPipeline>> MaskPipeline::Create(
    const std::vector<api::OperatorSpec>& operators, const api::ImageShape& input, job::Split split,
    const std::string& name, int32_t fill) {
  std::unique_ptr<MaskPipeline> made(new MaskPipeline(name, static_cast<uint8_t>(fill)));
  api::ImageShape shape = {std::max(input.height, 0), std::max(input.width, 0), 1};
  int32_t position = 0;
  for (size_t i = 0; i < operators.size(); ++i) {
    const absl::Status status = made->Add(operators[i], position, split, &shape);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("spec.pipeline[", i, "] (",
                                       api::OperatorName(operators[i].op), ") ", status.message()));
    }
    position += operators[i].repeat;
  }
  made->output_ = {shape.height, shape.width};
  return made;
}

absl::Status MaskPipeline::Run(const source::RawSample& sample, const SampleKey& key,
                               std::span<uint8_t> out) const {
  const absl::Status status = RunStages(sample, key, out);
  EndScratch();
  return status;
}

absl::Status MaskPipeline::RunStages(const source::RawSample& sample, const SampleKey& key,
                                     std::span<uint8_t> out) const {
  if (int64_t(out.size()) != output_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("buffer of ", out.size(), " bytes for a mask of ", output_bytes(), " bytes"));
  }
  if (sample.mask.empty()) return absl::DataLossError(absl::StrCat(name_, ": is empty"));
  HETERO_ASSIGN_OR_RETURN(const api::Size size, PictureSize(sample));
  Image* images = MaskScratch().images;
  const absl::Status decoded = DecodeMask(sample.mask, size, &images[0]);
  if (!decoded.ok()) {
    return absl::Status(decoded.code(), absl::StrCat(name_, ": ", decoded.message()));
  }
  Exchange(fill_, images[0].bytes);
  ImageView view = images[0].view();
  NeedsScratch(ByteSize(view.shape));
  for (const Stage& stage : stages_) {
    job::RandomStream random(key.seed, key.epoch, key.sample_id, stage.position);
    const ImageView in = view;
    Image* other = in.data == images[0].bytes.data() ? &images[1] : &images[0];
    HETERO_RETURN_IF_ERROR(stage.op->Transform(in, other, random, &view));
    NeedsScratch(ByteSize(view.shape));
  }
  if (view.shape.height != output_.height || view.shape.width != output_.width) {
    return absl::InternalError(absl::StrCat(name_, ": came out as ", ToString(view.shape),
                                            " instead of ", output_.height, "x", output_.width));
  }
  std::copy_n(view.data, out.size(), out.begin());
  Exchange(fill_, out);
  return absl::OkStatus();
}

}  // namespace hetero::pipeline
