#include "runtime/feed/feed_listener.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/fake_clock.h"
#include "base/socket_address.h"

namespace hetero::feed {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr int kDeadlineMs = 20'000;

// A listener's port, and connections to it that say nothing. Of the first one the listener's
// descriptor has a copy, as in a child process.
class FeedListenerTest : public ::testing::Test {
 protected:
  ~FeedListenerTest() override {
    for (const int fd : dialled_) close(fd);
    if (copy_ >= 0) close(copy_);
  }

  void Listen(base::Clock& clock, size_t most_waiting = FeedListener::kMostWaiting) {
    auto listener = FeedListener::Bind("127.0.0.1:0", clock, most_waiting);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    listener_->Start({.to_grpc = [](int, int connection) { close(connection); }});
  }
  void Dial() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    dialled_.push_back(fd);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(listener_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  void DialAndCopy() {
    ASSERT_NO_FATAL_FAILURE(Dial());
    const std::string own = base::OwnAddress(dialled_.front());
    for (int tries = 0; copy_ < 0 && tries < kDeadlineMs / 10; ++tries) {
      base::Clock::Real().SleepFor(milliseconds(10), {});
      for (int fd = 0; copy_ < 0 && fd < 1024; ++fd) {
        if (base::PeerAddress(fd) == own) copy_ = dup(fd);
      }
    }
    ASSERT_GE(copy_, 0) << "it was not taken";
  }
  // Whether that is so within the time.
  static bool Ended(int connection, int within_ms) {
    pollfd over = {.fd = connection, .events = POLLIN, .revents = 0};
    char byte = 0;
    return poll(&over, 1, within_ms) == 1 && read(connection, &byte, 1) <= 0;
  }

  base::FakeClock clock_;
  std::unique_ptr<FeedListener> listener_;
  std::vector<int> dialled_;
  int copy_ = -1;
};

TEST_F(FeedListenerTest, WhereTooManySayNothingTheOldestIsGivenUpAndNamed) {
  ::testing::internal::CaptureStderr();
  Listen(base::Clock::Real(), /*most_waiting=*/2);
  DialAndCopy();
  for (int i = 0; i < 2; ++i) Dial();
  EXPECT_TRUE(Ended(dialled_[0], kDeadlineMs));
  EXPECT_FALSE(Ended(dialled_[1], 0));
  EXPECT_FALSE(Ended(dialled_[2], 0));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("connections that say nothing are closed before their time"));
  EXPECT_THAT(said, HasSubstr("waiting=2 closed=1 oldest=" + base::OwnAddress(dialled_[0]) + "\n"));
}

TEST_F(FeedListenerTest, WhoSaysNothingInTimeIsGivenUp) {
  Listen(clock_);
  DialAndCopy();
  bool ended = false;
  for (int tries = 0; !ended && tries < kDeadlineMs / 100; ++tries) {
    clock_.Advance(std::chrono::seconds(11));
    ended = Ended(dialled_[0], 100);
  }
  EXPECT_TRUE(ended);
}

TEST_F(FeedListenerTest, WhoHasSaidNothingHearsOfItsEnd) {
  Listen(base::Clock::Real());
  DialAndCopy();
  listener_.reset();
  EXPECT_TRUE(Ended(dialled_[0], kDeadlineMs));
}

TEST_F(FeedListenerTest, NamesWhatItCannotListenOn) {
  const auto first = FeedListener::Bind("127.0.0.1:0", base::Clock::Real());
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string taken = "127.0.0.1:" + std::to_string((*first)->port());
  const absl::Status status = FeedListener::Bind(taken, base::Clock::Real()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find(taken), std::string::npos) << status;
  EXPECT_TRUE(absl::IsInvalidArgument(FeedListener::Bind("no port", base::Clock::Real()).status()));
  EXPECT_TRUE(FeedListener::Bind("0.0.0.0:0", base::Clock::Real()).ok());
}

}  // namespace
}  // namespace hetero::feed
