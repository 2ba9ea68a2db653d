#pragma once

#include <string>
#include <vector>

#include "hetero/v1/membership.pb.h"

namespace hetero::process {

// Each of `secrets` in `text` as ***. Of one that another begins with, the longer one counts.
std::string WithoutSecretValues(std::string text, const std::vector<std::string>& secrets);

// Adds what this process has printed since the last call, for the live page: the newest 50 lines of
// 16 KiB at most, without the values of its secret variables (IsSecretVariable()). From any thread;
// of several ranks in one process the first that asks tells.
void AddLogLines(v1::Heartbeat& heartbeat);

}  // namespace hetero::process
