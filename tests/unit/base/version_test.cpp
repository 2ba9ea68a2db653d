#include "base/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/support/paths.h"

namespace hetero::base {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(VersionTest, TheCommitIsAShortHashOrUnknown) {
  EXPECT_THAT(Commit(), MatchesRegex("[0-9A-Za-z.-]+"));
  EXPECT_EQ(DescribeVersion(), std::string(kVersion) + " (" + Commit() + ")");
}

TEST(VersionTest, TheCommitIsBuildMetadataWhereItIsKnown) {
  EXPECT_EQ(FullVersion("0.1.0", "ce2b346"), "0.1.0+ce2b346");
  EXPECT_EQ(FullVersion("0.1.0", "ce2b346-dirty"), "0.1.0+ce2b346-dirty");
  EXPECT_EQ(FullVersion("0.1.0", "unknown"), "0.1.0");
  EXPECT_EQ(FullVersion("0.1.0", ""), "0.1.0");
}

std::string Source(const std::string& path) {
  std::ifstream file(testing::SourceDir() + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// What docs/releases.md says is to be changed with a release.
TEST(VersionTest, EveryPlaceThatNamesTheVersionNamesThisOne) {
  const std::string version = kVersion;
  EXPECT_THAT(Source("CMakeLists.txt"), HasSubstr("project(hetero VERSION " + version + " "));
  EXPECT_THAT(Source("charts/hetero-operator/Chart.yaml"), HasSubstr("\nversion: " + version));
  EXPECT_THAT(Source("charts/hetero-operator/Chart.yaml"), HasSubstr("\nappVersion: " + version));
  EXPECT_THAT(Source("operator/children/settings.h"), HasSubstr("hetero-runtime:" + version));
  EXPECT_THAT(Source("operator/children/settings.h"), HasSubstr("hetero-trainer:" + version));
  EXPECT_THAT(Source("images/Dockerfile"), HasSubstr("ARG VERSION=" + version));
}

}  // namespace
}  // namespace hetero::base
