#include "runtime/head/heartbeat_buffer.h"

#include <gtest/gtest.h>

#include "runtime/head/resource_point.h"

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

v1::ResourcePoint PointAt(int64_t half_second) {
  v1::ResourcePoint point;
  point.set_unix_ns(1'700'000'000'000'000'000 + half_second * 500'000'000);
  point.set_seconds(0.5);
  point.set_core_busy(std::string(kMostCores, 'c'));
  v1::ThreadGroupUse* group = point.add_groups();
  group->set_group("pipeline");
  group->set_cpu_seconds(0.25);
  return point;
}

// A new head hears of all the time that a job took, and of the last minute what the old one heard.
TEST(HeartbeatBufferTest, OfResourcesNothingIsLostAndTheMessageStaysSmall) {
  constexpr int kPoints = 200'000;
  HeartbeatBuffer buffer;
  for (int i = 0; i < kPoints; i += 2) {
    v1::Heartbeat heartbeat;
    *heartbeat.add_resources() = PointAt(i);
    *heartbeat.add_resources() = PointAt(i + 1);
    heartbeat.add_lives()->set_ticket(i);
    buffer.Add(heartbeat);
  }
  const v1::Heartbeat all = buffer.Merge({});
  EXPECT_LT(all.ByteSizeLong(), size_t{1} << 17);
  ASSERT_LE(all.resources_size(), 240);
  double seconds = 0, cpu = 0;
  for (int i = 0; i < all.resources_size(); ++i) {
    const v1::ResourcePoint& point = all.resources(i);
    seconds += point.seconds();
    cpu += point.groups(0).cpu_seconds();
    if (i > 0) EXPECT_GT(point.unix_ns(), all.resources(i - 1).unix_ns());
  }
  EXPECT_NEAR(seconds, 0.5 * kPoints, 1e-6);
  EXPECT_NEAR(cpu, 0.25 * kPoints, 1e-6);
  for (int i = 0; i < 120; ++i) {
    EXPECT_EQ(all.resources(all.resources_size() - 1 - i).unix_ns(),
              PointAt(kPoints - 1 - i).unix_ns());
  }
  ASSERT_EQ(all.lives_size(), 50);
  EXPECT_EQ(all.lives(49).ticket(), kPoints - 2);
}

}  // namespace
}  // namespace hetero::head
