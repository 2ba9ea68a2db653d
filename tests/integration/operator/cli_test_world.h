#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/operator/support/world.h"
#include "tests/unit/cli/pty_program.h"

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

  // Until the terminal shows `text`.
  static bool WaitShown(const PtyProgram& program, const std::string& text,
                        std::chrono::seconds deadline = std::chrono::seconds(60));
  // As a newcomer would like to find the terminal.
  static void ExpectTidy(const PtyProgram& program);

  ControlPlane& plane_ = ControlPlane::Get();

 private:
  static OperatorProcess* operator_;
};

}  // namespace hetero::testing
