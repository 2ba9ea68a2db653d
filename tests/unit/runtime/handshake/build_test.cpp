#include "runtime/handshake/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/version.h"

namespace hetero::handshake {
namespace {

using ::testing::MatchesRegex;

TEST(BuildTest, SameVersionAndProtocolWorkTogetherAndNothingElse) {
  struct Case {
    const char* name;
    Build one, other;
    bool together;
  };
  const std::vector<Case> cases = {
      {"the same", {"0.2.0", "aaa", "1-01"}, {"0.2.0", "aaa", "1-01"}, true},
      {"rebuilt", {"0.2.0", "aaa", "1-01"}, {"0.2.0", "aaa-dirty", "1-01"}, true},
      {"no commit", {"0.2.0", "", "1-01"}, {"0.2.0", "unknown", "1-01"}, true},
      {"another version", {"0.2.0", "aaa", "1-01"}, {"0.3.0", "aaa", "1-01"}, false},
      {"other messages", {"0.2.0", "aaa", "1-01"}, {"0.2.0", "aaa", "1-02"}, false},
      {"another meaning", {"0.2.0", "aaa", "1-01"}, {"0.2.0", "aaa", "2-01"}, false},
      {"0.1.0", {"0.1.0", "", ""}, {"0.1.0", "aaa", "1-01"}, false},
      {"two of 0.1.0", {"0.1.0", "", ""}, {"0.1.0", "", ""}, false},
      {"nothing told", {}, {}, false},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(CheckPeers("a", one.one, "b", one.other).ok(), one.together) << one.name;
    EXPECT_EQ(CheckPeers("b", one.other, "a", one.one).ok(), one.together) << one.name;
  }
}

TEST(BuildTest, TheErrorNamesBothBuildsAndTheRemedy) {
  const absl::Status status =
      CheckPeers("cpu-0", {.version = "0.1.0"}, "the head",
                 {.version = "0.2.0", .commit = "ce2b346", .protocol = "1-9f3c21aa"});
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(),
            "cpu-0 is of build 0.1.0 (tells no protocol), the head of build 0.2.0+ce2b346 "
            "(protocol 1-9f3c21aa): give every role of the job an image of the same build");
}

TEST(BuildTest, TheProtocolHoldsTheMessagesThatAreSpoken) {
  EXPECT_THAT(Protocol(), MatchesRegex("1-[0-9a-f]{8}"));
  EXPECT_EQ(ThisBuild().protocol, Protocol());
  EXPECT_EQ(ThisBuild().version, base::kVersion);
}

TEST(BuildTest, MetadataIsReadAsItWasWritten) {
  const Build build = FromMetadata(ToMetadata(ThisBuild()));
  EXPECT_TRUE(CheckPeers("a", build, "b", ThisBuild()).ok());
  EXPECT_EQ(build.commit, ThisBuild().commit);
  EXPECT_EQ(FromMetadata(ToMetadata({"0.2.0", "", "1-01"})).protocol, "1-01");
  for (const char* text : {"", "0.2.0", "a b c d", "  "}) {
    EXPECT_FALSE(CheckPeers("a", FromMetadata(text), "b", ThisBuild()).ok()) << text;
  }
}

}  // namespace
}  // namespace hetero::handshake
