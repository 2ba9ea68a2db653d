#include "operator/kube/exchange.h"

#include <gtest/gtest.h>

namespace hetero::kube {
namespace {

using Verdict = Exchange::Verdict;
using Wake = Exchange::Wake;

constexpr base::Instant kLongAgo{};
const base::Instant kNever = base::Instant::max() - std::chrono::hours(1);

TEST(Exchange, BytesMayComeBeforeTheHead) {
  Exchange exchange({.body = 100, .window = 100});
  EXPECT_EQ(exchange.OnBytes("abc", [] {}), Verdict::kGoOn);
  EXPECT_EQ(exchange.AwaitNews(kNever, {}), Wake::kNews);
  EXPECT_FALSE(exchange.has_head());
  exchange.OnHead(200, {{"a", "b"}});
  exchange.OnEnd();
  EXPECT_EQ(exchange.AwaitEnd(kNever, {}), Wake::kNews);
  EXPECT_EQ(exchange.TakeBytes(), "abc");
  EXPECT_TRUE(exchange.failure().ok());
}

TEST(Exchange, PausesTheNetworkUntilBytesAreTaken) {
  Exchange exchange({.body = 100, .window = 4});
  int resumed = 0;
  EXPECT_EQ(exchange.OnBytes("abcd", [&] { ++resumed; }), Verdict::kGoOn);
  EXPECT_EQ(exchange.OnBytes("e", [&] { ++resumed; }), Verdict::kPause);
  EXPECT_EQ(resumed, 0);
  EXPECT_EQ(exchange.TakeBytes(), "abcde");
  EXPECT_EQ(exchange.TakeBytes(), "");
  EXPECT_EQ(resumed, 1);
}

TEST(Exchange, ALeavingCallerLetsAPausedNetworkGo) {
  Exchange exchange({.body = 100, .window = 1});
  int resumed = 0;
  EXPECT_EQ(exchange.OnBytes("abc", [&] { ++resumed; }), Verdict::kPause);
  exchange.Abandon();
  EXPECT_EQ(resumed, 1);
  EXPECT_EQ(exchange.OnBytes("d", [&] { ++resumed; }), Verdict::kRefuse);
}

TEST(Exchange, RefusesWhatIsAboveTheCap) {
  Exchange exchange({.body = 4, .window = 100});
  exchange.OnHead(200, {});
  EXPECT_EQ(exchange.OnBytes("abcd", [] {}), Verdict::kGoOn);
  EXPECT_EQ(exchange.OnBytes("e", [] {}), Verdict::kRefuse);
  exchange.OnEnd();
  EXPECT_EQ(exchange.failure().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Exchange, AnEndWithoutAHeadIsAFailure) {
  Exchange exchange({.body = 4, .window = 4});
  exchange.OnEnd();
  EXPECT_EQ(exchange.failure().code(), absl::StatusCode::kUnavailable);
}

TEST(Exchange, TheFirstEndCounts) {
  Exchange exchange({.body = 4, .window = 4});
  exchange.OnFailure(absl::CancelledError("first"));
  exchange.OnFailure(absl::UnavailableError("second"));
  EXPECT_EQ(exchange.failure().message(), "first");
}

TEST(Exchange, WaitsEndAtDeadlineAndStop) {
  Exchange exchange({.body = 4, .window = 4});
  EXPECT_EQ(exchange.AwaitNews(kLongAgo, {}), Wake::kDeadline);
  EXPECT_EQ(exchange.AwaitEnd(kLongAgo, {}), Wake::kDeadline);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(exchange.AwaitNews(kNever, stop.get_token()), Wake::kStopped);
  EXPECT_EQ(exchange.AwaitEnd(kNever, stop.get_token()), Wake::kStopped);
}

}  // namespace
}  // namespace hetero::kube
