#pragma once

#include <string>
#include <string_view>

#include "api/hetero_training_job.h"

namespace hetero::api {

// A fingerprint of what the pods and the configuration of an attempt are made from, such as
// "1-0123456789abcdef". What may change while pods run is not part of it: runPolicy, autoscaling,
// and the replica counts of CPU workers. Fields that have their default value are not either, so
// that a version that knows more fields finds the same for a job that uses none of them.
//
// The number before the dash is to be raised when that no longer holds, as when Default() fills a
// field that it left alone before.
std::string SpecHash(const Spec& spec);

// Whether SpecHash() of this version can be compared with it. Not with an empty one.
bool IsComparableSpecHash(std::string_view hash);

}  // namespace hetero::api
