#pragma once

#include <string_view>

#include "runtime/insight/resource_use.h"

namespace hetero::process {

// What a thread of this project's programs does, by its name as the kernel has it: this project's
// threads name themselves, others are gRPC's or LibTorch's.
insight::ThreadGroup GroupOfThread(std::string_view name);

}  // namespace hetero::process
