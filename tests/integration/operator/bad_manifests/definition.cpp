#include "tests/integration/operator/bad_manifests/definition.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/support/paths.h"

namespace hetero::testing {

CommandResult Kubectl(std::vector<std::string> arguments, const std::string& input) {
  arguments.insert(arguments.begin(), "kubectl");
  return RunCommand(arguments, input);
}

void InstallDefinition() {
  static const bool installed = [] {
    const CommandResult apply = Kubectl({"apply", "-f", testing::SourceDir() + "/crds"});
    EXPECT_EQ(apply.exit_code, 0) << apply.output;
    // At first the definition has no conditions to wait on, which kubectl takes for an error.
    for (int i = 0; i < 100; ++i) {
      if (Kubectl({"get", "heterotrainingjobs"}).exit_code == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }();
  ASSERT_TRUE(installed);
}

}  // namespace hetero::testing
