// Disks that fill up while a job runs: training goes on, what was written stays good, and what
// could not be written is said.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/integration/local/slow_job.h"
#include "tests/integration/support/jobs.h"

namespace hetero {
namespace {

using testing::LocalRun;
using testing::ProgramResult;
using testing::ProgramRun;
using testing::SlowJob;
using testing::SmallJobYaml;
using testing::TemporaryFolder;

constexpr std::chrono::seconds kLongEnough(120);

// A file system of its own in memory.
class SmallDisk {
 public:
  SmallDisk() { mounted_ = mount("none", folder_.path().c_str(), "tmpfs", 0, "size=8m") == 0; }
  ~SmallDisk() {
    if (mounted_) umount2(folder_.path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  // Not a byte is left.
  void Fill() const {
    std::ofstream filler(folder_ / "filler", std::ios::binary | std::ios::app);
    const std::string block(4096, 'x');
    while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) continue;
  }
  void Free() const { std::filesystem::remove(folder_ / "filler"); }

 private:
  TemporaryFolder folder_;
  bool mounted_ = false;
};

std::string CheckpointOn(const SmallDisk& disk) {
  return "training.checkpoint={uri: 'file://" + (disk / "checkpoints") + "', everySteps: 3}";
}

TEST(FullDisk, CheckpointsThatFindNoRoomCostNothingElse) {
  const SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "NOT RUN: mounting a small file system needs root";
  LocalRun run(SmallJobYaml(), SlowJob({CheckpointOn(disk)}));
  ASSERT_TRUE(run.WaitForLog("gpu-0", "wrote a checkpoint", kLongEnough));
  disk.Fill();
  const nlohmann::json report = testing::ExpectUndisturbedResult(run);
  EXPECT_NE(report.value("checkpointProblem", "").find("No space left on device"),
            std::string::npos)
      << report;
  EXPECT_TRUE(report.contains("checkpointURI")) << "an older one stays";
}

// Weights that are not there are no success. The console is all that can say it, and the next run
// goes on from what is good.
TEST(FullDisk, AnOutputFolderThatFillsUpIsSaidAndTheNextRunGoesOn) {
  const SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "NOT RUN: mounting a small file system needs root";
  TemporaryFolder folder;
  std::vector<std::string> arguments = SlowJob({CheckpointOn(disk)});
  const std::vector<std::string> local = {"local", folder.Write("job.yaml", SmallJobYaml()),
                                          "--output", disk / "out"};
  arguments.insert(arguments.begin(), local.begin(), local.end());
  ProgramRun run("hetero-runtime", arguments);
  const auto end = std::chrono::steady_clock::now() + kLongEnough;
  while (!std::filesystem::exists(disk / "checkpoints/step-000000000003/DONE") && run.running() &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  do {  // a checkpoint that finds no room makes some, when it is given up
    disk.Fill();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  } while (run.running() && std::chrono::steady_clock::now() < end);
  const ProgramResult result = run.Wait(kLongEnough);
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find(disk / "out/model.safetensors"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("No space left on device"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("no report: "), std::string::npos) << result.output;
  EXPECT_FALSE(std::filesystem::exists(disk / "out/report.json")) << "no half a report";

  disk.Free();
  LocalRun again(SmallJobYaml(), SlowJob({CheckpointOn(disk)}));
  EXPECT_GT(testing::ExpectUndisturbedResult(again).value("resumedFromStep", 0), 0);
}

}  // namespace
}  // namespace hetero
