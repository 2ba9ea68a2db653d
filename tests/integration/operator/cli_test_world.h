#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/operator/support/world.h"

namespace hetero::testing {

// kubectl-hetero as a person has it: a plugin that kubectl finds on the PATH, with the rights of
// the namespace's user. One operator for all tests.
class CommandLine : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();

  // kubectl hetero ARGUMENTS, without a terminal.
  static CommandResult Hetero(std::vector<std::string> arguments, const std::string& input = "");
  // A kubeconfig for a ServiceAccount of the namespace with the ClusterRole (empty: no rights at
  // all), through `server` (empty: the API server itself).
  std::string KubeconfigFor(const std::string& name_space, const std::string& role,
                            const std::string& server = "");

  ControlPlane& plane_ = ControlPlane::Get();

 private:
  static OperatorProcess* operator_;
};

}  // namespace hetero::testing
