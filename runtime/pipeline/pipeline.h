#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "api/views.h"
#include "base/clock.h"
#include "runtime/job/schedule.h"
#include "runtime/pipeline/operator_costs.h"
#include "runtime/pipeline/python_functions.h"
#include "runtime/source/dataset.h"

namespace hetero::pipeline {

// What the trainer does to a uint8 batch: x / 255 when `unit_scale`, then (x - mean) / std per
// channel when they are given, as float32 [N, C, H, W].
struct TensorConversion {
  bool unit_scale = true;
  std::vector<float> mean;
  std::vector<float> std;
};

// What decides a sample's random numbers.
struct SampleKey {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t sample_id = 0;
  int32_t view = 0;  // KeyOfView()
};

// The operators of spec.pipeline between storage and the wire: everything up to the first Normalize
// or Cast, which become the TensorConversion. Immutable; Run() may be called from any thread.
class Pipeline {
 public:
  // Checks the operators against the picture shape `input` (zero height: any size), and fixes the
  // output shape. kInvalidArgument names spec.pipeline[i] and the reason: an operator that needs
  // three channels, an output whose size is not fixed, an operator after Normalize. An
  // absent parameter has its default, and entries that no parser saw are checked as it would.
  // Validation uses each operator's deterministic form (docs/decisions/0001). `clock`, for Delay,
  // must outlive the pipeline. `first_position`: operators, repeats counted, that come before these
  // and are done elsewhere; random numbers depend on it. Entries that are for other views than
  // `view` are left out, and keep their positions. Nor may `python` end before it; without it a
  // pipeline with Python operators has its shapes, and runs nothing.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Create(
      const std::vector<api::OperatorSpec>& operators, const api::ImageShape& input,
      job::Split split, base::Clock& clock = base::Clock::Real(), int32_t first_position = 0,
      std::string_view view = api::kImageView, const PythonFunctions* python = nullptr);
  virtual ~Pipeline() = default;

  // Shape of every produced picture, uint8 [height, width, channels].
  virtual api::ImageShape output() const = 0;
  // Pictures that are made of a sample, one behind the other (views.h).
  virtual int32_t views() const { return 1; }
  int64_t output_bytes() const {
    const api::ImageShape shape = output();
    return int64_t{views()} * shape.height * shape.width * shape.channels;
  }
  virtual const TensorConversion& conversion() const = 0;

  // Produces one sample into `out`, output_bytes() long. kDataLoss: the bytes cannot be decoded or
  // have another shape than `input`.
  virtual absl::Status Run(const source::RawSample& sample, const SampleKey& key,
                           std::span<uint8_t> out) const = 0;

  // By entry of `operators`, what Run() has spent on the samples that it measured: decoding is the
  // first entry's, where that is Decode. Reading is not among it.
  virtual std::vector<OperatorCost> costs() const = 0;
};

}  // namespace hetero::pipeline
