#pragma once

#include <cstdint>
#include <string>

// What is said when a limit of runPolicy is reached, on a cluster and on one machine.
namespace hetero::api {

// "runPolicy.activeDeadlineSeconds: the job has run for 60 s without finishing".
std::string DescribeActiveDeadline(int64_t seconds);
// "runPolicy.stallTimeoutSeconds: no step for 60 s".
std::string DescribeStall(int64_t seconds);
// "gpu-1 failed: ...; runPolicy.maxRestarts allows 3 restarts".
std::string DescribeRestartsExceeded(const std::string& cause, int32_t max_restarts);

}  // namespace hetero::api
