#pragma once

#include <string>
#include <vector>

#include "tests/integration/operator/support/command.h"

namespace hetero::testing {

// kubectl as the administrator of the cluster around this program (tests/cluster/run).
CommandResult Kubectl(std::vector<std::string> arguments, const std::string& input = "");

// crds/, once per program; returns when the kind is served, and fails the test when it is not.
void InstallDefinition();

}  // namespace hetero::testing
