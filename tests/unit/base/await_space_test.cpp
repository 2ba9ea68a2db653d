#include "base/await_space.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/fake_clock.h"

namespace hetero::base {
namespace {

using std::chrono::seconds;

absl::Status Full() { return absl::ResourceExhaustedError("no space left"); }

// A write, whose statuses come one after the other, on a thread of its own.
class Writing {
 public:
  explicit Writing(std::function<absl::Status(int attempt)> write) {
    thread_ = std::jthread([this, write = std::move(write)](std::stop_token stop) {
      status_ = WriteWhenThereIsSpace([&] { return write(++attempts_); }, seconds(3), clock_,
                                      [this](const absl::Status&) { ++told_; }, std::move(stop));
    });
  }
  // Passes this many waits, and gives the status.
  absl::Status After(int waits) {
    for (int i = 0; i < waits; ++i) {
      EXPECT_TRUE(clock_.WaitForSleepers(1));
      clock_.Advance(seconds(1));
    }
    thread_.join();
    return status_;
  }
  void Stop() {
    EXPECT_TRUE(clock_.WaitForSleepers(1));
    thread_.request_stop();
    thread_.join();
  }
  int attempts() const { return attempts_; }
  int told() const { return told_; }

 private:
  FakeClock clock_;
  int attempts_ = 0;
  int told_ = 0;
  absl::Status status_;
  std::jthread thread_;
};

TEST(AwaitSpaceTest, WritesAgainUntilThereIsSpace) {
  Writing writing([](int attempt) { return attempt < 3 ? Full() : absl::OkStatus(); });
  EXPECT_TRUE(writing.After(2).ok());
  EXPECT_EQ(writing.attempts(), 3);
  EXPECT_EQ(writing.told(), 1);
}

TEST(AwaitSpaceTest, GivesUpAfterItsPatience) {
  Writing writing([](int) { return Full(); });
  EXPECT_TRUE(absl::IsResourceExhausted(writing.After(3)));
  EXPECT_EQ(writing.attempts(), 4);
}

TEST(AwaitSpaceTest, WaitsForNothingElse) {
  Writing writing([](int) { return absl::PermissionDeniedError("no"); });
  EXPECT_TRUE(absl::IsPermissionDenied(writing.After(0)));
  EXPECT_EQ(writing.told(), 0);
  EXPECT_EQ(writing.attempts(), 1);
}

TEST(AwaitSpaceTest, AStopEndsTheWait) {
  Writing writing([](int) { return Full(); });
  writing.Stop();
  EXPECT_EQ(writing.attempts(), 1);
}

}  // namespace
}  // namespace hetero::base
