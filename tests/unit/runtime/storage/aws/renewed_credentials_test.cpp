#include "runtime/storage/aws/renewed_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "base/fake_clock.h"

namespace hetero::storage {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class Source : public CredentialSource {
 public:
  explicit Source(base::Clock& clock) : clock_(clock) {}
  std::string name() const override { return "the test"; }
  absl::StatusOr<AwsCredentials> Fetch() override {
    const int count = ++fetched;
    if (entered != nullptr) entered->count_down();
    if (gate != nullptr) gate->wait();
    if (!failure.ok()) return failure;
    return AwsCredentials{.access_key_id = std::to_string(count),
                          .secret_access_key = "s",
                          .expires = clock_.WallNow() + valid};
  }

  std::atomic<int> fetched = 0;
  absl::Status failure;
  base::Duration valid = hours(1);
  std::latch* entered = nullptr;
  std::latch* gate = nullptr;

 private:
  base::Clock& clock_;
};

class RenewedCredentialsTest : public ::testing::Test {
 protected:
  RenewedCredentialsTest() {
    auto source = std::make_unique<Source>(clock_);
    source_ = source.get();
    credentials_ = std::make_unique<RenewedCredentials>(clock_, std::move(source));
  }
  std::string Key() {
    const auto credentials = credentials_->Get();
    return credentials.ok() ? (*credentials)->access_key_id
                            : std::string(credentials.status().message());
  }

  base::FakeClock clock_;
  Source* source_;
  std::unique_ptr<RenewedCredentials> credentials_;
};

TEST_F(RenewedCredentialsTest, RenewsBeforeTheyEndAndNotSooner) {
  EXPECT_EQ(Key(), "1");
  clock_.Advance(minutes(54));
  EXPECT_EQ(Key(), "1");
  clock_.Advance(minutes(2));
  EXPECT_EQ(Key(), "2");
  EXPECT_EQ(source_->fetched, 2);
}

TEST_F(RenewedCredentialsTest, OldOnesHoldWhileRenewingFails) {
  EXPECT_EQ(Key(), "1");
  source_->failure = absl::UnavailableError("down");
  clock_.Advance(minutes(56));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Key(), "1");
  EXPECT_EQ(source_->fetched, 2);  // not with every request
  clock_.Advance(seconds(11));
  EXPECT_EQ(Key(), "1");
  EXPECT_EQ(source_->fetched, 3);
  clock_.Advance(minutes(4));
  EXPECT_EQ(Key(), "down");
  source_->failure = absl::OkStatus();
  EXPECT_EQ(Key(), "5");
}

TEST_F(RenewedCredentialsTest, ManyThreadsMakeOneRenewal) {
  std::latch gate(1), entered(1);
  source_->gate = &gate;
  source_->entered = &entered;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([this] { EXPECT_EQ(Key(), "1"); });
  entered.wait();
  gate.count_down();
  threads.clear();
  EXPECT_EQ(source_->fetched, 1);
}

TEST_F(RenewedCredentialsTest, WhoComesDuringARenewalGoesOnWithTheOldOnes) {
  EXPECT_EQ(Key(), "1");
  clock_.Advance(minutes(56));
  std::latch gate(1), entered(1);
  source_->gate = &gate;
  source_->entered = &entered;
  std::jthread renewing([this] { EXPECT_EQ(Key(), "2"); });
  entered.wait();
  EXPECT_EQ(Key(), "1");
  gate.count_down();
}

TEST_F(RenewedCredentialsTest, WhatTheServerCallsExpiredIsRenewedOnce) {
  const auto first = *credentials_->Get();
  credentials_->Expired(*first);
  EXPECT_EQ(Key(), "2");
  credentials_->Expired(*first);  // another thread's request, with the same old ones
  EXPECT_EQ(Key(), "2");
}

// Of those who wait for the first renewal one may find that what it gave is refused already.
TEST_F(RenewedCredentialsTest, WhatIsRefusedWhileOthersWaitIsRenewedByOneOfThem) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < 1000; ++round) {
        const auto credentials = credentials_->Get();
        ASSERT_TRUE(credentials.ok()) << credentials.status();
        credentials_->Expired(**credentials);
      }
    });
  }
}

TEST_F(RenewedCredentialsTest, ShortLivedOnesAreNotRenewedWithEachRequest) {
  source_->valid = minutes(2);
  EXPECT_EQ(Key(), "1");
  EXPECT_EQ(Key(), "1");
  clock_.Advance(seconds(11));
  EXPECT_EQ(Key(), "2");
}

TEST_F(RenewedCredentialsTest, ThoseThatHaveEndedAlreadyPointAtTheClock) {
  source_->valid = -minutes(2);
  EXPECT_THAT(Key(), ::testing::HasSubstr("clock"));
}

}  // namespace
}  // namespace hetero::storage
