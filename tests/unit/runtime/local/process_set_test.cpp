#include "runtime/local/process_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/fake_clock.h"
#include "tests/support/temporary_folder.h"

namespace hetero::local {
namespace {

// Whose wall clock somebody sets.
class SetClock : public base::FakeClock {
 public:
  base::WallTime WallNow() const override { return FakeClock::WallNow() + offset; }
  base::Duration offset{0};
};

class ProcessSetTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_ / "logs"); }

  testing::TemporaryFolder folder_;
  const api::HeteroTrainingJob job_ = [] {
    api::HeteroTrainingJob job;
    job.spec.roles = {{.name = "head", .type = api::RoleType::kHead},
                      {.name = "gpu", .type = api::RoleType::kGpuWorker, .gpus_per_replica = 0}};
    return job;
  }();
  SetClock clock_;
  ProcessSet processes_{job_,
                        {.runtime_program = "/bin/true",
                         .trainer_program = "/bin/true",
                         .socket_folder = folder_.path(),
                         .job_file = folder_ / "job.json",
                         .output_folder = folder_.path()},
                        -1,
                        clock_};
};

// Members and heads take the larger of two incarnations for the newer process.
TEST_F(ProcessSetTest, ANewProcessIsTheNewerOneThoughTheClockWentBack) {
  ASSERT_TRUE(processes_.StartAll().ok());
  ProcessSet::Member& head = processes_.members()[0];
  const int64_t before = head.incarnation;
  EXPECT_NE(before, processes_.members()[1].incarnation);
  clock_.offset = -std::chrono::hours(1);
  ASSERT_TRUE(processes_.Start(head).ok());
  EXPECT_GT(head.incarnation, before);
  clock_.offset = std::chrono::hours(1);
  ASSERT_TRUE(processes_.Start(head).ok());
  EXPECT_GT(head.incarnation, before + std::chrono::nanoseconds(std::chrono::minutes(59)).count());
}

// The report of a job of two seconds said an hour.
TEST_F(ProcessSetTest, AJobIsAsOldForTheNextHeadThoughTheClockWasSet) {
  const auto age = [this](const ProcessSet::Member& head) {
    const auto flag =
        std::find(head.plan.command.begin(), head.plan.command.end(), "--created-unix-ns");
    const base::Duration created(std::stoll(*std::next(flag)));
    return std::chrono::duration_cast<base::Duration>(clock_.WallNow().time_since_epoch()) -
           created;
  };
  ASSERT_TRUE(processes_.StartAll().ok());
  ProcessSet::Member& head = processes_.members()[0];
  EXPECT_EQ(age(head), base::Duration::zero());
  clock_.Advance(std::chrono::seconds(7));
  for (const int hours : {1, -1}) {
    clock_.offset = std::chrono::hours(hours);
    ASSERT_TRUE(processes_.Start(head).ok());
    EXPECT_EQ(age(head), std::chrono::seconds(7));
  }
}

}  // namespace
}  // namespace hetero::local
