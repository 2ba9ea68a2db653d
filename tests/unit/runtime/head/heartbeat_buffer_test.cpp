#include "runtime/head/heartbeat_buffer.h"

#include <gtest/gtest.h>

namespace hetero::head {
namespace {

v1::Heartbeat WithLoss(int64_t step) {
  v1::Heartbeat heartbeat;
  heartbeat.add_losses()->set_step(step);
  return heartbeat;
}

// It once kept the last five heartbeats: a head that was replaced later knew no earlier loss,
// evaluation or bad sample.
TEST(HeartbeatBufferTest, ANewHeadHearsAllFromTheBeginning) {
  HeartbeatBuffer buffer;
  v1::Heartbeat first = WithLoss(1);
  first.add_evaluations()->set_step(1);
  first.add_bad_samples()->set_sample_id(7);
  buffer.Add(first);
  for (int64_t step = 2; step <= 100; ++step) {
    v1::Heartbeat heartbeat = WithLoss(step);
    heartbeat.mutable_progress()->set_train_seconds(static_cast<double>(step));
    heartbeat.mutable_progress()->mutable_phases()->set_wait(1);
    buffer.Add(heartbeat);
  }
  const v1::Heartbeat all = buffer.Merge(WithLoss(101));
  ASSERT_EQ(all.losses_size(), 101);
  for (int i = 0; i <= 100; ++i) EXPECT_EQ(all.losses(i).step(), i + 1);
  EXPECT_EQ(all.evaluations_size(), 1);
  EXPECT_EQ(all.bad_samples(0).sample_id(), 7);
  EXPECT_EQ(all.time_line_size(), 99);
}

TEST(HeartbeatBufferTest, HoweverMuchWasToldItHasABound) {
  HeartbeatBuffer buffer;
  v1::Heartbeat many;
  for (int64_t step = 1; step <= 200'000; ++step) {
    many.add_losses()->set_step(step);
    many.add_evaluations()->set_step(step);
    many.add_bad_samples()->set_sample_id(step);
  }
  const v1::Heartbeat all = buffer.Merge(many);
  EXPECT_LT(all.ByteSizeLong(), size_t{1} << 20);  // a message may have 4 MB
  EXPECT_EQ(all.losses(0).step(), 1);
  EXPECT_EQ(all.losses(all.losses_size() - 1).step(), 200'000);
  for (int i = 1; i < all.losses_size(); ++i) {
    EXPECT_LT(all.losses(i - 1).step(), all.losses(i).step());
  }
}

// A message above gRPC's 4 MiB is refused, and so was everything that this member said after it.
TEST(HeartbeatBufferTest, LongTextsDoNotMakeAMessageThatNoHeadTakes) {
  HeartbeatBuffer buffer;
  v1::Heartbeat many;
  for (int64_t id = 0; id < 10'000; ++id) {
    many.add_bad_samples()->set_sample_id(id);
    many.mutable_bad_samples()->rbegin()->set_reason(std::string(4096, 'r'));
    many.add_faults()->set_what(std::string(100'000, 'f'));
  }
  buffer.Add(many);
  const v1::Heartbeat all = buffer.Merge({});
  EXPECT_LT(all.ByteSizeLong(), size_t{1} << 20);
  ASSERT_EQ(all.bad_samples_size(), 10'000) << "each id counts against the job's limit";
  EXPECT_EQ(all.bad_samples(0).reason().substr(0, 3), "rrr");
}

}  // namespace
}  // namespace hetero::head
