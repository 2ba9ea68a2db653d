#pragma once

#include <string_view>

#include "runtime/insight/evidence.h"

// Evidence written by hand, in round numbers. docs/findings.md has what is found in it.
namespace hetero::insight {

// A minute of a job with four CPU workers and two ranks, each with a GPU, in which nothing is
// wrong.
Evidence Usual();

// The same with what the rule of that name finds.
Evidence ExampleOf(std::string_view rule);

// Of Usual(): each rank waits so long of its minute, for batches in work.
void LetWait(Evidence& evidence, double seconds);

}  // namespace hetero::insight
