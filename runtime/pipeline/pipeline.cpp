#include "runtime/pipeline/pipeline.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/operators.h"
#include "base/status_macros.h"
#include "runtime/job/philox.h"
#include "runtime/pipeline/decode.h"
#include "runtime/pipeline/operator.h"
#include "runtime/pipeline/operator_factory.h"
#include "runtime/pipeline/scratch.h"
#include "runtime/pipeline/tensor_conversion.h"

namespace hetero::pipeline {
namespace {

// RandomStream's limit on positions.
constexpr int32_t kMaxOperators = 1 << 16;

struct Stage {
  std::unique_ptr<Operator> op;
  int32_t position = 0;  // among spec.pipeline with repeats unrolled
  size_t entry = 0;      // whose it is
};

struct Plan {
  api::ImageShape input;   // zero height and width: any
  api::ImageShape output;  // the same until an operator fixes it
  std::vector<Stage> stages;
  TensorConversion conversion;
  bool decodes = false;  // the first entry is Decode
};

class OperatorPipeline final : public Pipeline {
 public:
  OperatorPipeline(Plan plan, size_t entries, const PythonFunctions* python)
      : plan_(std::move(plan)), costs_(entries, python) {}

  api::ImageShape output() const override { return plan_.output; }
  const TensorConversion& conversion() const override { return plan_.conversion; }
  absl::Status Run(const source::RawSample& sample, const SampleKey& key,
                   std::span<uint8_t> out) const override;
  std::vector<OperatorCost> costs() const override { return costs_.all(); }

 private:
  absl::Status RunStages(const source::RawSample& sample, const SampleKey& key,
                         std::span<uint8_t> out, OperatorCosts::Sample& cost) const;
  // Decodes what the first operator looks at and applies it; whether it could is in `*done`.
  absl::Status RunFirstOnRegion(const source::RawSample& sample, const SampleKey& key,
                                OperatorCosts::Sample& cost, bool* done, ImageView* view) const;
  absl::Status CheckInput(const api::ImageShape& shape) const;
  void CountDecoding(OperatorCosts::Sample& cost) const {
    if (plan_.decodes) {
      cost.Spent(0);
    } else {
      cost.Skip();
    }
  }

  const Plan plan_;
  mutable OperatorCosts costs_;
};

std::string Place(size_t index, api::OperatorKind kind) {
  return absl::StrCat("spec.pipeline[", index, "] (", api::OperatorName(kind), ")");
}

absl::Status AtPlace(size_t index, api::OperatorKind kind, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(Place(index, kind), " ", std::string(status.message())));
}

// Adds the stages of one entry, its repeats unrolled, and moves plan->output on.
absl::Status AddUint8Operator(const api::OperatorSpec& spec, size_t entry, int32_t position,
                              const OperatorContext& context, Plan* plan) {
  for (int32_t repeat = 0; repeat < spec.repeat; ++repeat) {
    auto operators = MakeOperators(spec, context);
    if (!operators.ok()) return operators.status();
    for (std::unique_ptr<Operator>& op : *operators) {
      auto shape = op->OutputShape(plan->output);
      if (!shape.ok()) return shape.status();
      plan->output = *shape;
      plan->stages.push_back({std::move(op), position + repeat, entry});
    }
  }
  return absl::OkStatus();
}

// What the parser says of an entry; so one that was not parsed meets the same limits.
absl::Status CheckSpec(const api::OperatorSpec& spec) {
  const std::vector<api::FieldError> errors = api::CheckOperator(spec);
  if (errors.empty()) return absl::OkStatus();
  const auto& [path, reason, line] = errors.front();
  return absl::InvalidArgumentError(path.empty() ? reason : absl::StrCat(path, ": ", reason));
}

absl::Status AddOperator(api::OperatorSpec spec, size_t entry, int32_t position,
                         const OperatorContext& context, ConversionBuilder* conversion,
                         Plan* plan) {
  HETERO_RETURN_IF_ERROR(CheckSpec(spec));
  api::FillDefaults(spec);
  if (spec.repeat >= kMaxOperators - position) {
    return absl::InvalidArgumentError(
        absl::StrCat("makes ", kMaxOperators, " operators or more, repeats counted"));
  }
  switch (spec.op) {
    case api::OperatorKind::kDecode:
      if (position != 0 || spec.repeat != 1) {
        return absl::InvalidArgumentError("must come first, and once: later pictures are decoded");
      }
      return absl::OkStatus();
    case api::OperatorKind::kNormalize:
    case api::OperatorKind::kCast:
      for (int32_t repeat = 0; repeat < spec.repeat; ++repeat) {
        absl::Status status = conversion->Add(spec, plan->output.channels);
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    default:
      if (conversion->converts()) {
        return absl::InvalidArgumentError(
            "takes uint8 pictures; move it before the first Normalize or Cast");
      }
      return AddUint8Operator(spec, entry, position, context, plan);
  }
}

absl::Status CheckOutput(const std::vector<api::OperatorSpec>& operators, const Plan& plan) {
  if (plan.output.height > 0 && plan.output.width > 0) return absl::OkStatus();
  const std::string last =
      operators.empty() ? "spec.pipeline" : Place(operators.size() - 1, operators.back().op);
  return absl::InvalidArgumentError(
      absl::StrCat(last,
                   " leaves pictures whose size varies; add Resize with size, CenterCrop or "
                   "RandomResizedCrop"));
}

// Two pictures that take turns as source and target.
struct TwoImages {
  Image images[2];
  KeptBuffer kept[2] = {KeptBuffer(&images[0].bytes), KeptBuffer(&images[1].bytes)};
};

TwoImages& Scratch() {
  static thread_local TwoImages scratch;
  return scratch;
}

// The scratch picture that does not hold `view`.
Image* OtherThan(const ImageView& view) {
  Image* images = Scratch().images;
  return view.data == images[0].bytes.data() ? &images[1] : &images[0];
}

absl::Status Load(const source::RawSample& sample, Image* decoded, ImageView* view) {
  switch (sample.encoding) {
    case source::Encoding::kRaw:
      if (sample.shape.height < 1 || sample.shape.width < 1 || sample.shape.channels < 1 ||
          ByteSize(sample.shape) != int64_t(sample.bytes.size())) {
        return absl::DataLossError(absl::StrCat("raw picture of ", sample.bytes.size(),
                                                " bytes is declared as ", ToString(sample.shape)));
      }
      *view = {sample.shape, sample.bytes.data()};
      return absl::OkStatus();
    case source::Encoding::kJpeg:
    case source::Encoding::kPng: {
      absl::Status status = sample.encoding == source::Encoding::kJpeg
                                ? DecodeJpeg(sample.bytes, decoded)
                                : DecodePng(sample.bytes, decoded);
      *view = decoded->view();
      return status;
    }
  }
  return absl::InternalError("unknown encoding");
}

absl::Status OperatorPipeline::CheckInput(const api::ImageShape& shape) const {
  if (plan_.input.height > 0 ? shape == plan_.input : shape.channels == plan_.input.channels) {
    return absl::OkStatus();
  }
  const std::string wanted = plan_.input.height > 0
                                 ? ToString(plan_.input)
                                 : absl::StrCat(plan_.input.channels, " channels");
  return absl::DataLossError(absl::StrCat("picture is ", ToString(shape), " but the dataset's are ",
                                          wanted, " (decoded pictures always have 3 channels)"));
}

absl::Status OperatorPipeline::RunFirstOnRegion(const source::RawSample& sample,
                                                const SampleKey& key, OperatorCosts::Sample& cost,
                                                bool* done, ImageView* view) const {
  *done = false;
  if (sample.encoding != source::Encoding::kJpeg || plan_.stages.empty()) return absl::OkStatus();
  const auto* first = dynamic_cast<const CroppingOperator*>(plan_.stages[0].op.get());
  if (first == nullptr) return absl::OkStatus();
  job::RandomStream random(key.seed, key.epoch, key.sample_id, plan_.stages[0].position, key.view);
  absl::Status fits;
  const auto choose = [&](const api::ImageShape& shape) {
    fits = CheckInput(shape);
    return fits.ok() ? first->Region(shape, random) : Box{0, 0, 1, 1};
  };
  Image* region = &Scratch().images[0];
  Box inside;
  absl::Status status = DecodeJpegBox(sample.bytes, choose, region, &inside);
  if (!status.ok()) return status;
  if (!fits.ok()) return fits;
  NeedsScratch(ByteSize(region->shape));
  CountDecoding(cost);
  Image* out = &Scratch().images[1];
  *done = true;
  status = first->ApplyToRegion(region->view(), inside, out, random);
  *view = out->view();
  cost.Spent(plan_.stages[0].entry);
  return status;
}

absl::Status OperatorPipeline::Run(const source::RawSample& sample, const SampleKey& key,
                                   std::span<uint8_t> out) const {
  if (int64_t(out.size()) != output_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "buffer of ", out.size(), " bytes for a sample of ", output_bytes(), " bytes"));
  }
  OperatorCosts::Sample cost(costs_, key.epoch, key.sample_id);
  absl::Status status = RunStages(sample, key, out, cost);
  EndScratch();
  if (status.ok()) cost.Done();
  return status;
}

absl::Status OperatorPipeline::RunStages(const source::RawSample& sample, const SampleKey& key,
                                         std::span<uint8_t> out,
                                         OperatorCosts::Sample& cost) const {
  ImageView view;
  bool first_done = false;
  HETERO_RETURN_IF_ERROR(RunFirstOnRegion(sample, key, cost, &first_done, &view));
  if (!first_done) {
    if (absl::Status status = Load(sample, &Scratch().images[0], &view); !status.ok())
      return status;
    if (absl::Status status = CheckInput(view.shape); !status.ok()) return status;
    NeedsScratch(ByteSize(view.shape));
    CountDecoding(cost);
  }
  for (size_t i = first_done ? 1 : 0; i < plan_.stages.size(); ++i) {
    const Stage& stage = plan_.stages[i];
    job::RandomStream random(key.seed, key.epoch, key.sample_id, stage.position, key.view);
    const bool last = i + 1 == plan_.stages.size();
    if (last && stage.op->writes_anywhere() && view.shape == plan_.output) {
      absl::Status status = stage.op->ApplyTo(view, out.data(), random);
      cost.Spent(stage.entry);
      return status;
    }
    const ImageView in = view;
    HETERO_RETURN_IF_ERROR(stage.op->Transform(in, OtherThan(in), random, &view));
    NeedsScratch(ByteSize(view.shape));
    cost.Spent(stage.entry);
  }
  if (view.shape != plan_.output) {
    return absl::InternalError(absl::StrCat("pipeline produced ", ToString(view.shape),
                                            " instead of ", ToString(plan_.output)));
  }
  std::memcpy(out.data(), view.data, out.size());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Create(
    const std::vector<api::OperatorSpec>& operators, const api::ImageShape& input, job::Split split,
    base::Clock& clock, int32_t first_position, std::string_view view,
    const PythonFunctions* python) {
  Plan plan;
  plan.input = input;
  if (input.height < 1 || input.width < 1) {
    // Only encoded pictures vary in size, and decoding gives three channels.
    plan.input = {0, 0, input.channels > 0 ? input.channels : 3};
  }
  plan.output = plan.input;
  ConversionBuilder conversion;
  const OperatorContext context{split, clock, python};
  int32_t position = first_position;
  for (size_t i = 0; i < operators.size(); ++i) {
    const api::OperatorSpec& spec = operators[i];
    if (api::IsFor(spec, view)) {
      absl::Status status = AddOperator(spec, i, position, context, &conversion, &plan);
      if (!status.ok()) return AtPlace(i, spec.op, status);
    }
    position += spec.repeat;
  }
  if (absl::Status status = CheckOutput(operators, plan); !status.ok()) return status;
  plan.conversion = conversion.conversion();
  plan.decodes = !operators.empty() && operators[0].op == api::OperatorKind::kDecode;
  return std::make_unique<OperatorPipeline>(std::move(plan), operators.size(), python);
}

}  // namespace hetero::pipeline
