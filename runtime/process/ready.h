#pragma once

#include "hetero/v1/membership.pb.h"
#include "runtime/feed/sample_producer.h"

namespace hetero::process {

// What this process sees of its job's data, for the head to compare.
v1::Ready MakeReady(const feed::SampleProducer& producer);

}  // namespace hetero::process
