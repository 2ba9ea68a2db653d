#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/hetero_training_job.h"
#include "runtime/source/counter_random.h"

// The drawings of make-dataset: one shape on a plain background. The class says what is drawn, the
// random numbers where, how large, turned, bright and noisy. No call to libm, so the same numbers
// give the same bytes everywhere.
namespace hetero::source {

inline constexpr int32_t kShapeClasses = 64;  // eight shapes in eight colours or textures

// Name of class `label` in [0, kShapeClasses) in colour, such as "red-circle"; all are distinct.
std::string ShapeClassName(int32_t label);

// Fills `*pixels` with class `label` as [height, width, 3]: shape and colour tell the class.
void DrawColourShape(int32_t label, api::Size size, CounterRandom random,
                     std::vector<uint8_t>* pixels);

// The same as [height, width, 1]: shape, texture and polarity tell the class.
void DrawGreyShape(int32_t label, api::Size size, CounterRandom random,
                   std::vector<uint8_t>* pixels);

}  // namespace hetero::source
