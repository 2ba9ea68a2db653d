// A leak of one batch in a hundred would show here.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"

namespace hetero {
namespace {

using testing::LocalRun;
using testing::SmallJobYaml;

int64_t ResidentBytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

int64_t StepsOf(const LocalRun& run) {
  const std::string log = run.log("gpu-0");
  const size_t at = log.rfind("epoch ended");
  if (at == std::string::npos) return 0;
  const size_t epoch = log.find("epoch=", at);
  return epoch == std::string::npos ? 0 : 50 * std::stoll(log.substr(epoch + 6));
}

// 3,200 samples in batches of 64 are 50 steps an epoch.
TEST(Memory, StaysFlatOverTwoThousandBatches) {
  LocalRun run(SmallJobYaml(),
               {"--set", "dataset.samples=3200", "--set", "training.batchSizePerWorker=64", "--set",
                "roles.gpu.replicas=1", "--set", "training.epochs=50"});
  const pid_t worker = run.PidOf("cpu-0"), trainer = run.PidOf("gpu-0");
  int64_t worker_early = 0, trainer_early = 0, worker_late = 0, trainer_late = 0;
  while (run.program().running()) {
    const int64_t steps = StepsOf(run);
    if (steps >= 500 && worker_early == 0) {
      worker_early = ResidentBytes(worker);
      trainer_early = ResidentBytes(trainer);
    }
    if (steps >= 500 && steps < 2500) {
      worker_late = std::max(worker_late, ResidentBytes(worker));
      trainer_late = std::max(trainer_late, ResidentBytes(trainer));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(run.Wait().exit_code, 0);
  ASSERT_GT(worker_early, 0);
  std::cout << "CPU worker " << worker_early / 1e6 << " -> " << worker_late / 1e6 << " MB, trainer "
            << trainer_early / 1e6 << " -> " << trainer_late / 1e6 << " MB\n";
  constexpr int64_t kSlack =
      16 << 20;  // allocators keep a little; 2,000 leaked batches would be 55 MB
  EXPECT_LT(worker_late, worker_early + kSlack);
  EXPECT_LT(trainer_late, trainer_early + kSlack);
}

}  // namespace
}  // namespace hetero
