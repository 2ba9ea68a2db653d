#include "runtime/storage/range_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetero::storage {
namespace {

using ::testing::HasSubstr;
using Verdict = Judgement::Verdict;

TEST(ContentRangeTest, ReadsOnlyWhatIsOne) {
  const ContentRange range = *ParseContentRange("bytes 5-9/123456789012");
  EXPECT_EQ(range.first, 5);
  EXPECT_EQ(range.last, 9);
  EXPECT_EQ(range.size, 123456789012);
  EXPECT_EQ(ParseContentRange("bytes 0-0/*")->size, -1);
  for (const char* text : {"", "bytes", "bytes 5-9", "bytes 9-5/10", "bytes */10", "bytes -5-9/10",
                           "bytes 5-9/-10", "items 5-9/10", "bytes 5-9/10x", "bytes 5/9-10",
                           "bytes 99999999999999999999-9/10", "bytes +5-9/10"}) {
    EXPECT_FALSE(ParseContentRange(text).has_value()) << text;
  }
}

// Bytes 10 to 19 of an object of 100.
struct Case {
  std::string what;
  HttpResponse response;
  std::string version;
  Verdict verdict;
  absl::StatusCode code = absl::StatusCode::kOk;
};

TEST(RangeReplyTest, OnlyTheVeryBytesAreRight) {
  const Object object{"x", 100, "v1"};
  const auto part = [](const char* range, int64_t received) {
    return HttpResponse{.status = 206, .headers = {{"content-range", range}}, .received = received};
  };
  HttpResponse too_long = part("bytes 10-19/100", 10);
  too_long.overflow = true;
  const Case cases[] = {
      {"right", part("bytes 10-19/100", 10), "v1", Verdict::kDone},
      {"right, of a server that says little", part("bytes 10-19/*", 10), "", Verdict::kDone},
      {"another version", part("bytes 10-19/100", 10), "v2", Verdict::kFailed,
       absl::StatusCode::kFailedPrecondition},
      {"another size", part("bytes 10-19/101", 10), "v1", Verdict::kFailed,
       absl::StatusCode::kFailedPrecondition},
      {"refused by its version",
       {.status = 412},
       "",
       Verdict::kFailed,
       absl::StatusCode::kFailedPrecondition},
      {"shorter now", {.status = 416}, "", Verdict::kFailed, absl::StatusCode::kFailedPrecondition},
      {"other bytes", part("bytes 0-9/100", 10), "v1", Verdict::kAgain,
       absl::StatusCode::kUnavailable},
      {"fewer bytes", part("bytes 10-18/100", 9), "v1", Verdict::kAgain,
       absl::StatusCode::kUnavailable},
      {"fewer than it says", part("bytes 10-19/100", 9), "v1", Verdict::kAgain,
       absl::StatusCode::kUnavailable},
      {"more than it says", too_long, "v1", Verdict::kAgain, absl::StatusCode::kUnavailable},
      {"no range",
       {.status = 206, .received = 10},
       "v1",
       Verdict::kAgain,
       absl::StatusCode::kUnavailable},
      {"all of it",
       {.status = 200, .received = 10, .overflow = true},
       "v1",
       Verdict::kFailed,
       absl::StatusCode::kUnimplemented},
      {"gone", {.status = 404}, "", Verdict::kFailed, absl::StatusCode::kNotFound},
      {"busy", {.status = 503}, "", Verdict::kAgainSlower, absl::StatusCode::kUnavailable},
      {"nothing", {.status = 204}, "", Verdict::kFailed, absl::StatusCode::kInternal},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const Judgement judgement = JudgeRange(c.response, object, 10, 10, JudgeStatus, c.version);
    EXPECT_EQ(judgement.verdict, c.verdict) << judgement.reason;
    EXPECT_EQ(judgement.code, c.code);
  }
}

TEST(RangeReplyTest, AWholeObjectMayComeAsSuch) {
  const Object object{"x", 10, ""};
  EXPECT_EQ(JudgeRange({.status = 200, .received = 10}, object, 0, 10, JudgeStatus, "").verdict,
            Verdict::kDone);
  EXPECT_EQ(JudgeRange({.status = 200, .received = 9}, object, 0, 10, JudgeStatus, "").verdict,
            Verdict::kAgain);
  const Judgement grown =
      JudgeRange({.status = 200, .received = 10, .overflow = true}, object, 0, 10, JudgeStatus, "");
  EXPECT_EQ(grown.code, absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(grown.reason, HasSubstr("more bytes"));
}

}  // namespace
}  // namespace hetero::storage
