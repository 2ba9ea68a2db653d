#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/source/dataset.h"

namespace hetero::source {

// Pictures computed from (seed, split, id): no storage, any size. The class (id mod classes)
// decides mean colour, contrast and the direction and frequency of a wave; the picture's key
// decides the wave's phase, brightness and noise. A network can learn it, and a 224x224x3 picture
// costs well below a millisecond. Samples are raw uint8 [height, width, channels]. `samples`,
// A label of Int64 without a shape is the class's number, one of Float32 its share of all classes;
// with a shape, number j is bit j mod 31 of the class, 0 or 1: several labels at once.
// `classes` and `image` are required: kInvalidArgument names the missing one.
absl::StatusOr<std::unique_ptr<Dataset>> OpenSynthetic(const api::DatasetSource& source,
                                                       job::Split split, uint64_t seed,
                                                       const api::Label& label = {});

}  // namespace hetero::source
