#include "runtime/storage/http/persistent_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <utility>

#include "tests/unit/runtime/storage/jumping_clock.h"
#include "tests/unit/runtime/storage/scripted_client.h"

namespace hetero::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class PersistentClientTest : public ::testing::Test {
 protected:
  absl::StatusOr<PersistentClient::Answer> Send(ScriptedClient::Script script) {
    http_.emplace(std::move(script));
    PersistentClient client(*http_, clock_, limit_, options_, deadlines_);
    return client.Send({.what = "cannot do it", .prepare = [] { return HttpRequest(); }});
  }
  static HttpResponse Reply(int status) { return {.status = status}; }

  JumpingClock clock_;
  ConcurrencyLimit limit_{{.initial = 8, .most = 256}};
  RetryOptions options_;
  HttpDeadlines deadlines_;
  std::optional<ScriptedClient> http_;
};

TEST_F(PersistentClientTest, TriesAgainWithLongerWaitsUntilItIsDone) {
  int left = 4;
  const auto answer = Send([&](const HttpRequest&) -> absl::StatusOr<HttpResponse> {
    switch (left--) {
      case 4:
        return absl::UnavailableError("reset");
      case 3:
        return absl::DeadlineExceededError("silence");
      case 2:
        return Reply(500);
      case 1:
        return Reply(503);
      default:
        return Reply(200);
    }
  });
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->attempts, 5);
  ASSERT_EQ(clock_.sleeps.size(), 4);
  for (size_t i = 0; i < 4; ++i) {  // 100 ms, 200 ms, ..., each shortened by at most a half
    EXPECT_LE(clock_.sleeps[i], milliseconds(100 << i));
    EXPECT_GE(clock_.sleeps[i], milliseconds(50 << i));
  }
}

// 5xx of servers and of what stands before them.
TEST_F(PersistentClientTest, WhatMaySucceedLaterIsTriedAgain) {
  for (const int status : {408, 429, 500, 502, 503, 504, 520, 524, 529, 599}) {
    bool first = true;
    const auto answer =
        Send([&](const HttpRequest&) { return Reply(std::exchange(first, false) ? status : 200); });
    EXPECT_TRUE(answer.ok()) << status << ": " << answer.status();
    EXPECT_EQ(answer->attempts, 2) << status;
  }
}

// Of all stores of the process, which other tests use too: what is new counts.
TEST_F(PersistentClientTest, WhatItAskedForIsCountedAndPriced) {
  const RequestMeter meter({.per_request = 0.25, .per_byte = 0.125});
  const RequestFigures before = RequestMeter::OfProcess();
  std::vector<uint8_t> bytes(8);
  const auto send = [&](const char* method, absl::Span<uint8_t> into,
                        std::vector<absl::StatusOr<HttpResponse>> replies) {
    size_t next = 0;
    http_.emplace([&](const HttpRequest&) { return replies[next++]; });
    PersistentClient client(*http_, clock_, limit_, options_, deadlines_, &meter);
    return client
        .Send({.what = "read",
               .prepare = [&] { return HttpRequest{.method = method, .into = into}; }})
        .ok();
  };
  const HttpResponse eight = {.status = 206, .body = "12345678"};
  EXPECT_TRUE(
      send("GET", absl::MakeSpan(bytes), {absl::UnavailableError("reset"), Reply(503), eight}));
  EXPECT_TRUE(send("PUT", {}, {Reply(200)}));
  EXPECT_FALSE(send("HEAD", {}, {Reply(404)}));
  Send([](const HttpRequest&) { return Reply(200); }).IgnoreError();  // by a client without one
  const RequestFigures after = RequestMeter::OfProcess();
  EXPECT_EQ(after.requests - before.requests, 5);
  EXPECT_EQ(after.retries - before.retries, 2);
  EXPECT_EQ(after.bytes - before.bytes, 8);
  EXPECT_EQ(after.throttled - before.throttled, 1);
  EXPECT_GE(after.seconds, before.seconds);
  EXPECT_DOUBLE_EQ(after.dollars - before.dollars, 2 * 0.25 + 8 * 0.125);
}

TEST_F(PersistentClientTest, GivesUpAfterSoManyAttemptsAndSaysHowMany) {
  options_.most_attempts = 3;
  const auto answer = Send([&](const HttpRequest&) { return Reply(503); });
  EXPECT_TRUE(absl::IsUnavailable(answer.status()));
  EXPECT_THAT(std::string(answer.status().message()),
              ::testing::MatchesRegex("cannot do it: HTTP 503; tried 3 times in 0\\.[0-9] s"));
  EXPECT_EQ(http_->requests.size(), 3);
}

TEST_F(PersistentClientTest, GivesUpWhenTheTimeIsSpent) {
  options_.total = seconds(60);
  options_.most_attempts = 1000;
  const auto answer = Send([&](const HttpRequest& request) -> absl::StatusOr<HttpResponse> {
    // An exchange does not get more time than there is left.
    EXPECT_LE(request.deadlines.total, seconds(60));
    clock_.Advance(std::min<base::Duration>(request.deadlines.total, seconds(25)));
    return absl::DeadlineExceededError("silence");
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status()));
  EXPECT_EQ(http_->requests.size(), 3);
  EXPECT_EQ(http_->requests[0].deadlines.total, seconds(60));
  EXPECT_LT(http_->requests[2].deadlines.total, seconds(10));
}

TEST_F(PersistentClientTest, MuchToMoveHasMoreTime) {
  std::vector<uint8_t> place(10 << 20);
  const std::string body(5 << 20, 'x');
  ScriptedClient http([](const HttpRequest&) { return Reply(200); });
  PersistentClient client(http, clock_, limit_, options_, deadlines_);
  for (const HttpRequest& request :
       {HttpRequest{.into = absl::MakeSpan(place)}, HttpRequest{.body = body}}) {
    ASSERT_TRUE(client.Send({.what = "x", .prepare = [&] { return request; }}).ok());
  }
  EXPECT_EQ(http.requests[0].deadlines.total, seconds(130));
  EXPECT_EQ(http.requests[1].deadlines.total, seconds(125));
}

TEST_F(PersistentClientTest, WhatCannotSucceedIsNotTriedAgain) {
  const std::pair<int, absl::StatusCode> cases[] = {
      {400, absl::StatusCode::kInternal},           {401, absl::StatusCode::kPermissionDenied},
      {403, absl::StatusCode::kPermissionDenied},   {404, absl::StatusCode::kNotFound},
      {412, absl::StatusCode::kFailedPrecondition}, {416, absl::StatusCode::kOutOfRange},
      {501, absl::StatusCode::kInternal},           {505, absl::StatusCode::kInternal},
      {507, absl::StatusCode::kInternal},           {301, absl::StatusCode::kInternal}};
  for (const auto& [status, code] : cases) {
    SCOPED_TRACE(status);
    const auto answer = Send([status = status](const HttpRequest&) { return Reply(status); });
    EXPECT_EQ(answer.status().code(), code);
    EXPECT_EQ(http_->requests.size(), 1);
  }
  const auto answer = Send([&](const HttpRequest&) -> absl::StatusOr<HttpResponse> {
    return absl::UnauthenticatedError("its certificate");
  });
  EXPECT_TRUE(absl::IsUnauthenticated(answer.status()));
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("tried 1 time in"));
  EXPECT_TRUE(clock_.sleeps.empty());
}

// The credentials' error says how often their server was asked.
TEST_F(PersistentClientTest, WhatCannotBeAskedGivesItsOwnReasonAlone) {
  ScriptedClient http([](const HttpRequest&) { return Reply(200); });
  PersistentClient client(http, clock_, limit_, options_, deadlines_);
  const auto answer =
      client.Send({.what = "cannot do it", .prepare = []() -> absl::StatusOr<HttpRequest> {
                     return absl::PermissionDeniedError("no credentials; tried 1 time in 0.0 s");
                   }});
  EXPECT_EQ(answer.status().message(), "cannot do it: no credentials; tried 1 time in 0.0 s");
  EXPECT_TRUE(http.requests.empty());
}

TEST_F(PersistentClientTest, WaitsAsLongAsTheServerSays) {
  int left = 1;
  const auto answer = Send([&](const HttpRequest&) {
    return left-- > 0 ? HttpResponse{.status = 429, .headers = {{"retry-after", "7"}}} : Reply(200);
  });
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(clock_.sleeps.size(), 1);
  EXPECT_EQ(clock_.sleeps[0], seconds(7));
}

// MinIO says so to any request that comes while it starts or is busy.
TEST_F(PersistentClientTest, TwoMinutesAreNoReasonToGiveUpAtOnce) {
  for (const milliseconds total : {seconds(120), seconds(30)}) {
    options_.total = total;
    clock_.sleeps.clear();
    int left = 3;
    const auto answer = Send([&](const HttpRequest&) {
      return left-- > 0 ? HttpResponse{.status = 503, .headers = {{"retry-after", "120"}}}
                        : Reply(200);
    });
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->attempts, 4);
    ASSERT_EQ(clock_.sleeps.size(), 3);
    EXPECT_EQ(clock_.sleeps[0], total / 4);
  }
}

TEST_F(PersistentClientTest, SlowDownHalvesWhatMayBeUnderway) {
  int left = 1;
  ASSERT_TRUE(Send([&](const HttpRequest&) { return Reply(left-- > 0 ? 503 : 200); }).ok());
  EXPECT_EQ(limit_.limit(), 4);
  left = 1;
  ASSERT_TRUE(Send([&](const HttpRequest&) { return Reply(left-- > 0 ? 500 : 200); }).ok());
  EXPECT_EQ(limit_.limit(), 4);  // that was not about too many
  EXPECT_EQ(limit_.underway(), 0);
}

TEST(ConcurrencyLimitTest, OneBurstOfRefusalsHalvesOnce) {
  using Outcome = ConcurrencyLimit::Outcome;
  ConcurrencyLimit limit({.initial = 64, .most = 256});
  std::vector<ConcurrencyLimit::Slot> slots;
  for (int i = 0; i < 64; ++i) slots.push_back(limit.Take(seconds(1)));
  for (auto& slot : slots) slot.End(Outcome::kSlowDown);
  EXPECT_EQ(limit.limit(), 32);
  for (int i = 0; i < 10; ++i) limit.Take(seconds(1)).End(Outcome::kSlowDown);
  EXPECT_EQ(limit.limit(), 1);  // never none
}

TEST(ConcurrencyLimitTest, GrowsByOneForEachRoundThatFilledIt) {
  using Outcome = ConcurrencyLimit::Outcome;
  ConcurrencyLimit limit({.initial = 4, .most = 6});
  // Alone it shows nothing.
  for (int i = 0; i < 100; ++i) limit.Take(seconds(1)).End(Outcome::kGood);
  EXPECT_EQ(limit.limit(), 4);
  for (int round = 0; round < 40; ++round) {
    std::vector<ConcurrencyLimit::Slot> slots;
    while (static_cast<int>(slots.size()) < limit.limit()) slots.push_back(limit.Take(seconds(1)));
    for (auto& slot : slots) slot.End(Outcome::kGood);
  }
  EXPECT_EQ(limit.limit(), 6);
}

TEST(ConcurrencyLimitTest, WhoFindsNoPlaceWaitsForOne) {
  ConcurrencyLimit limit({.initial = 1, .most = 1});
  auto first = limit.Take(seconds(1));
  EXPECT_FALSE(limit.Take(milliseconds(1)).ok());
  std::jthread other([&] { EXPECT_TRUE(limit.Take(seconds(10)).ok()); });
  first.End(ConcurrencyLimit::Outcome::kGood);
}

}  // namespace
}  // namespace hetero::storage
