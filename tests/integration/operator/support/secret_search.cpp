#include "tests/integration/operator/support/secret_search.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/integration/operator/support/control_plane.h"
#include "tests/support/paths.h"

namespace hetero::testing {

std::string ObjectsWithoutSecrets(const std::string& name_space) {
  ControlPlane& plane = ControlPlane::Get();
  std::istringstream kinds(
      plane.MustKubectl({"api-resources", "--namespaced", "--verbs=list,get", "--output=name"}));
  std::string wanted;
  bool secrets = false;
  for (std::string kind; kinds >> kind;) {
    if (kind == "secrets") {
      secrets = true;
    } else {
      wanted += (wanted.empty() ? "" : ",") + kind;
    }
  }
  EXPECT_TRUE(secrets) << "not all kinds were told: " << wanted;
  return plane.MustKubectl(
      {"get", wanted, "-n", name_space, "-o", "json", "--show-managed-fields"});
}

std::vector<std::string> FindSecrets(const std::string& folder,
                                     const std::vector<std::string>& tokens) {
  std::string lines;
  for (const std::string& token : tokens) lines += token + "\n";
  const CommandResult search = RunCommand(
      {testing::SourceDir() + "/tests/integration/storage/without_secrets", "--in", folder}, lines,
      std::chrono::seconds(120));
  std::vector<std::string> found;
  std::istringstream output(search.output);
  for (std::string line; std::getline(output, line);) found.push_back(line);
  EXPECT_EQ(search.exit_code, found.empty() ? 0 : 1) << search.output;
  return found;
}

}  // namespace hetero::testing
