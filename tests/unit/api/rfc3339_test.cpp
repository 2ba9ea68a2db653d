#include <gtest/gtest.h>

#include <ctime>

#include "api/job_status.h"

namespace hetero::api {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

base::WallTime Unix(int64_t value) { return base::WallTime(seconds(value)); }

TEST(Rfc3339Test, WritesAsTheCLibraryDoes) {
  for (const int64_t second :
       {int64_t{0}, int64_t{1}, int64_t{951782399}, int64_t{951782400}, int64_t{1767225599},
        int64_t{1767225600}, int64_t{4102444799}, int64_t{-1}, int64_t{-2203891200}}) {
    const time_t moment = second;
    std::tm fields{};
    ASSERT_NE(gmtime_r(&moment, &fields), nullptr);
    char expected[32];
    ASSERT_GT(std::strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%SZ", &fields), 0u);
    EXPECT_EQ(FormatTime(Unix(second)), expected);
    EXPECT_EQ(ParseTime(expected).value(), Unix(second)) << expected;
  }
}

TEST(Rfc3339Test, FractionsAreReadAndNotWritten) {
  const base::WallTime base = Unix(1767225600);
  EXPECT_EQ(ParseTime("2026-01-01T00:00:00.5Z").value(), base + milliseconds(500));
  EXPECT_EQ(ParseTime("2026-01-01T00:00:00.000000001Z").value(), base + nanoseconds(1));
  EXPECT_EQ(ParseTime("2026-01-01T00:00:00.123456789987Z").value(), base + nanoseconds(123456789));
  EXPECT_EQ(FormatTime(base + milliseconds(999)), "2026-01-01T00:00:00Z");
  EXPECT_EQ(FormatTime(Unix(0) - milliseconds(1)), "1969-12-31T23:59:59Z");
}

TEST(Rfc3339Test, OffsetsAreReadAndNotWritten) {
  EXPECT_EQ(FormatTime(ParseTime("2026-01-01T01:30:00+01:30").value()), "2026-01-01T00:00:00Z");
  EXPECT_EQ(FormatTime(ParseTime("2025-12-31T16:00:00.25-08:00").value()), "2026-01-01T00:00:00Z");
  EXPECT_EQ(FormatTime(ParseTime("2026-01-01t00:00:00z").value()), "2026-01-01T00:00:00Z");
}

TEST(Rfc3339Test, OtherFormsAreRefused) {
  for (const char* text :
       {"", "now", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01 00:00:00Z",
        "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "2026-00-10T00:00:00Z",
        "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+1:00", "2026-01-01T00:00:00+0100",
        "2026-01-01T00:00:00Zx", "+026-01-01T00:00:00Z", "9999-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTime(text).status())) << text;
  }
}

}  // namespace
}  // namespace hetero::api
