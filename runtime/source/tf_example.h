#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hetero::source {

// Features of a serialized tf.train.Example
// (https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/example/feature.proto),
// read in place: a picture of some hundred kilobytes is not copied to be looked at.
struct TfFeature {
  enum class Kind { kMissing, kBytes, kFloats, kInts };
  Kind kind = Kind::kMissing;
  std::span<const uint8_t> list;  // the serialized list of values
};

// The feature of each of `names`, of the kind kMissing where there is none. kDataLoss: `example` is
// no tf.train.Example.
absl::StatusOr<std::vector<TfFeature>> FindFeatures(std::span<const uint8_t> example,
                                                    std::span<const std::string> names);

// "image/encoded (bytes), image/class/label (int64)", at most a few, for messages.
std::string FeaturesOf(std::span<const uint8_t> example);

// The values of a list of their kind. kDataLoss: it is damaged, or for BytesOf() not of one value.
absl::StatusOr<std::span<const uint8_t>> BytesOf(const TfFeature& feature);
absl::StatusOr<std::vector<int64_t>> IntsOf(const TfFeature& feature);
absl::StatusOr<std::vector<float>> FloatsOf(const TfFeature& feature);

}  // namespace hetero::source
