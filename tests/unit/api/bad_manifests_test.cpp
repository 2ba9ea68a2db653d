#include "tests/integration/operator/bad_manifests/bad_manifests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "api/manifest.h"

// The parser's side of the tables that the real API server is tried with: what both know is refused
// by both, at the same path.
namespace hetero::api {
namespace {

TEST(BadManifestsTest, TheParserRefusesWhatTheApiServerRefusesAtTheSamePath) {
  std::set<std::string> names;
  for (const testing::BadManifest& bad : testing::BadManifests()) {
    SCOPED_TRACE(bad.name);
    EXPECT_TRUE(names.insert(bad.name).second) << "twice in the table";
    const std::vector<FieldError> errors = ParseManifest(bad.manifest.dump()).errors;
    if (bad.parser_says.empty()) {
      EXPECT_TRUE(errors.empty()) << FormatErrors(errors);
      EXPECT_THAT(bad.path, ::testing::HasSubstr(".template."));  // the parser does not look inside
      continue;
    }
    const auto at_path = std::find_if(errors.begin(), errors.end(), [&](const FieldError& error) {
      return error.path == bad.path;
    });
    ASSERT_NE(at_path, errors.end()) << FormatErrors(errors);
    EXPECT_THAT(at_path->reason, ::testing::HasSubstr(bad.parser_says));
  }
  EXPECT_GE(names.size(), 60);
}

TEST(BadManifestsTest, TheManifestThatTheTableChangesIsAccepted) {
  EXPECT_EQ(FormatErrors(ParseManifest(testing::BaseManifest().dump()).errors), "");
}

}  // namespace
}  // namespace hetero::api
