#include "runtime/local/process_set.h"

#include <gtest/gtest.h>

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

// Members and heads take the larger of two incarnations for the newer process.
TEST(ProcessSet, ANewProcessIsTheNewerOneThoughTheClockWentBack) {
  testing::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "logs");
  api::HeteroTrainingJob job;
  job.spec.roles = {{.name = "head", .type = api::RoleType::kHead},
                    {.name = "gpu", .type = api::RoleType::kGpuWorker, .gpus_per_replica = 0}};
  SetClock clock;
  ProcessSet processes(job,
                       {.runtime_program = "/bin/true",
                        .trainer_program = "/bin/true",
                        .socket_folder = folder.path(),
                        .job_file = folder / "job.json",
                        .output_folder = folder.path()},
                       -1, clock);
  ASSERT_TRUE(processes.StartAll().ok());
  ProcessSet::Member& head = processes.members()[0];
  const int64_t before = head.incarnation;
  EXPECT_NE(before, processes.members()[1].incarnation);
  clock.offset = -std::chrono::hours(1);
  ASSERT_TRUE(processes.Start(head).ok());
  EXPECT_GT(head.incarnation, before);
  clock.offset = std::chrono::hours(1);
  ASSERT_TRUE(processes.Start(head).ok());
  EXPECT_GT(head.incarnation, before + std::chrono::nanoseconds(std::chrono::minutes(59)).count());
}

}  // namespace
}  // namespace hetero::local
