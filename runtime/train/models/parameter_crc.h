#pragma once

#include <cstdint>

#include "runtime/train/models/model.h"

namespace hetero::train {

// CRC32C over the values of all parameters, then all buffers, in their order and in row-major
// layout. Two models have the same one when they are equal bit by bit.
uint32_t ParameterCrc(const Model& model);

}  // namespace hetero::train
