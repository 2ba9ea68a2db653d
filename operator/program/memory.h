#pragma once

#include <stop_token>

#include "base/clock.h"

// The operator stands by most of its time, beside hundreds of others on a node: it keeps in memory
// what it uses.
namespace hetero::program {

// Before the first thread starts.
void LimitMemory();

// Gives back what the allocator keeps after a list of thousands of objects, and the pages of the
// program and its libraries that only starting needed: they stay in the kernel's page cache and
// come back when they are used.
void ReturnUnusedMemory();

// Does so soon after the start and then once a minute, until stop.
void KeepMemorySmall(base::Clock& clock, std::stop_token stop);

}  // namespace hetero::program
