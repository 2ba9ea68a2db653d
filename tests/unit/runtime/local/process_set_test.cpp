#include "runtime/local/process_set.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace hetero::local {
namespace {

// The machine's, but for the wall clock, which somebody sets.
class SetClock : public base::Clock {
 public:
  base::Instant Now() const override { return Real().Now(); }
  base::WallTime WallNow() const override { return wall; }
  bool SleepFor(base::Duration duration, std::stop_token stop) override {
    return Real().SleepFor(duration, std::move(stop));
  }

  base::WallTime wall{std::chrono::seconds(1'700'000'000)};
};

// A process was once older than the one whose place it took, and the head refused it for good.
TEST(ProcessSetTest, AClockThatIsSetBackMakesNoProcessOlderThanTheOneItReplaces) {
  testing::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "logs");
  api::HeteroTrainingJob job;
  job.metadata.name = "blur";
  for (const auto& [name, type] :
       {std::pair("head", api::RoleType::kHead), std::pair("cpu", api::RoleType::kCpuWorker)}) {
    api::Role& role = job.spec.roles.emplace_back();
    role.name = name;
    role.type = type;
  }
  SetClock clock;
  ProcessSet processes(job,
                       {.runtime_program = "/bin/true",
                        .trainer_program = "/bin/true",
                        .socket_folder = folder.path(),
                        .job_file = folder / "job.json",
                        .output_folder = folder.path()},
                       -1, clock);
  ASSERT_TRUE(processes.StartAll().ok());
  ProcessSet::Member& worker = processes.members()[1];
  const int64_t first = worker.incarnation;
  EXPECT_GE(first, 1'700'000'000'000'000'000);
  EXPECT_GT(first, processes.head().incarnation);
  clock.wall -= std::chrono::hours(2);
  ASSERT_TRUE(processes.Start(worker).ok());
  const int64_t second = worker.incarnation;
  EXPECT_GT(second, first);
  clock.wall += std::chrono::hours(4);
  ASSERT_TRUE(processes.Start(worker).ok());
  EXPECT_EQ(worker.incarnation, (1'700'000'000 + 2 * 3600) * int64_t{1'000'000'000});
}

}  // namespace
}  // namespace hetero::local
