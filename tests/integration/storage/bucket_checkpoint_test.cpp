// Jobs whose checkpoints lie in a bucket, by the programs as a user runs them, against a real
// server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/storage/copy.h"
#include "runtime/storage/open_store.h"
#include "tests/integration/local/slow_job.h"
#include "tests/integration/storage/s3_server.h"
#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::storage {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using testing::ExpectUndisturbedResult;
using ::testing::HasSubstr;
using testing::LocalRun;
using ::testing::MatchesRegex;
using ::testing::Not;
using testing::ProgramResult;
using testing::SlowJob;
using testing::SmallJobYaml;
using testing::WaitForFirstStep;

constexpr char kFolder[] = "s3://bucket/checkpoints";
constexpr char kEndless[] = "training.epochs=100000";

std::vector<std::string> Job(std::vector<std::string> more = {}) {
  more.push_back(absl::StrCat("training.checkpoint={uri: '", kFolder, "', everySteps: 2}"));
  return SlowJob(more);
}

class BucketCheckpoint : public ::testing::Test {
 protected:
  BucketCheckpoint() { server_.MakeBucket("bucket"); }

  std::vector<std::string> Access() const {
    return {absl::StrCat("AWS_ENDPOINT_URL=", server_.endpoint()),
            absl::StrCat("AWS_REGION=", S3Server::kRegion),
            absl::StrCat("AWS_ACCESS_KEY_ID=", S3Server::kKey),
            absl::StrCat("AWS_SECRET_ACCESS_KEY=", S3Server::kSecret)};
  }
  std::unique_ptr<WritableStore> Store() const {
    return *OpenWritableStore(kFolder, server_.Options());
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    const absl::StatusOr<std::vector<Object>> objects = Store()->List("");
    for (const Object& object : *objects) names.push_back(object.name);
    return names;
  }
  bool WaitForCheckpoint(LocalRun& run) {
    return run.WaitForLog("gpu-0", "wrote a checkpoint", seconds(90));
  }

  S3Server server_;
};

TEST_F(BucketCheckpoint, TrainersThatAreKilledGoOnFromIt) {
  LocalRun run(SmallJobYaml(), Job(), Access());
  ASSERT_TRUE(WaitForCheckpoint(run));
  for (const char* name : {"gpu-0", "gpu-1"}) kill(run.PidOf(name), SIGKILL);
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_GT(report.value("resumedFromStep", 0), 0);
  EXPECT_THAT(report.value("checkpoint", nlohmann::json()).dump(), Not(HasSubstr("file://")));
  // The newest two, whole, and the lock, which nobody holds any more.
  const std::vector<std::string> names = Names();
  ASSERT_EQ(names.size(), 9u) << ::testing::PrintToString(names);
  const std::string newest =
      absl::StrCat("step-", absl::Dec(testing::kSlowJobSteps, absl::kZeroPad12), "-[0-9]+/");
  EXPECT_THAT((std::vector<std::string>{names.begin() + 5, names.end()}),
              ElementsAre(MatchesRegex(newest + "DONE"), MatchesRegex(newest + "manifest.json"),
                          MatchesRegex(newest + "model.safetensors"),
                          MatchesRegex(newest + "optimizer.safetensors")));
  std::vector<uint8_t> lock;
  ASSERT_TRUE(Store()->ReadAll(".lock", 1000, &lock).ok());
  EXPECT_THAT(std::string(lock.begin(), lock.end()), HasSubstr("released"));
}

TEST_F(BucketCheckpoint, AJobThatIsKilledIsGoneOnWith) {
  {
    LocalRun run(SmallJobYaml(), Job(), Access());
    ASSERT_TRUE(WaitForCheckpoint(run));
    const std::vector<pid_t> ranks = {run.PidOf("gpu-0"), run.PidOf("gpu-1")};
    kill(run.program().pid(), SIGKILL);
    for (const pid_t rank : ranks) kill(rank, SIGKILL);
    run.Wait();
  }
  // A piece of one that was being written.
  const auto store = Store();
  const auto writer = *store->Create("step-000000000099/model.safetensors");
  ASSERT_TRUE(writer->Append(std::vector<uint8_t>(10)).ok());
  ASSERT_TRUE(writer->Close().ok());

  LocalRun next(SmallJobYaml(), Job(), Access());
  const nlohmann::json report = ExpectUndisturbedResult(next);
  EXPECT_GT(report.value("resumedFromStep", 0), 0);
  for (const std::string& name : Names()) EXPECT_THAT(name, Not(HasSubstr("step-000000000099/")));
}

// It could never start again.
TEST_F(BucketCheckpoint, AJobThatWasKilledWhileItWroteItsFirstBeginsAnew) {
  const auto store = Store();
  const auto writer = *store->Create("step-000000000002/model.safetensors");
  ASSERT_TRUE(writer->Append(std::vector<uint8_t>(10)).ok());
  ASSERT_TRUE(writer->Close().ok());
  LocalRun run(SmallJobYaml(), Job({"training.maxSteps=6"}), Access());
  const ProgramResult result = run.Wait(seconds(90));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(run.report().value("resumedFromStep", 0), 0);
  for (const std::string& name : Names()) EXPECT_THAT(name, Not(HasSubstr("step-000000000002/")));
}

TEST_F(BucketCheckpoint, ASecondJobIsRefusedAndTheFirstNamed) {
  LocalRun first(SmallJobYaml(), Job({kEndless}), Access());
  ASSERT_TRUE(WaitForCheckpoint(first));
  LocalRun second(SmallJobYaml(), Job({"runPolicy.maxRestarts=0"}), Access());
  const ProgramResult result = second.Wait(seconds(120));
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr(absl::StrCat("the checkpoints in ", kFolder,
                                                    " are in use by job small (gpu-0, process ")));
  first.program().Signal(SIGINT);
  EXPECT_EQ(first.Wait(seconds(60)).exit_code, 130);
}

// As a job of another machine does that could not see this one.
TEST_F(BucketCheckpoint, WhoLosesTheLockWritesNoneAnyMoreAndSaysWhoHasIt) {
  LocalRun run(SmallJobYaml(), Job({kEndless}), Access());
  ASSERT_TRUE(WaitForCheckpoint(run));
  const auto store = Store();
  const auto writer = *store->Create(".lock");
  const std::string theirs = R"({"run":"r","job":"theirs","host":"node-7","process":"gpu-0"})";
  ASSERT_TRUE(
      writer->Append({reinterpret_cast<const uint8_t*>(theirs.data()), theirs.size()}).ok());
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_TRUE(run.WaitForLog("gpu-0", "job theirs (gpu-0 on node-7) has taken the checkpoints over",
                             seconds(60)));
  const std::vector<std::string> names = Names();
  run.program().Signal(SIGINT);
  EXPECT_EQ(run.Wait(seconds(60)).exit_code, 130);
  EXPECT_EQ(Names(), names) << "its end wrote none";
  std::vector<uint8_t> lock;
  ASSERT_TRUE(store->ReadAll(".lock", 1000, &lock).ok());
  EXPECT_EQ(std::string(lock.begin(), lock.end()), theirs);
}

// A copy of the data has other versions, too: so the job goes on, and says so.
TEST_F(BucketCheckpoint, DataThatWereWrittenOverSinceItAreNoticed) {
  const auto store = *OpenWritableStore("s3://bucket/set", server_.Options());
  const std::string pictures = testing::SourceDir() + "/tests/golden/datasets/image_folder";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(pictures)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().lexically_relative(pictures);
    ASSERT_TRUE(CopyIntoStore(pictures, name, *store).ok());
  }
  const auto run_to = [&](int steps) {
    LocalRun run(SmallJobYaml(),
                 Job({"dataset={uri: 's3://bucket/set'}", "training.batchSizePerWorker=3",
                      "pipeline=[{op: Decode}, {op: Resize, size: {height: 12, width: 12}}, "
                      "{op: Normalize}]",
                      absl::StrCat("training.maxSteps=", steps), "training.epochs="}),
                 Access());
    const ProgramResult result = run.Wait(seconds(90));
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(run.report().value("resumedFromStep", 0), steps - 2);
    return result.output;
  };
  constexpr char kNotice[] = "the dataset's objects are others than when s3://bucket/";
  run_to(2);
  EXPECT_THAT(run_to(4), Not(HasSubstr(kNotice)));
  const testing::TemporaryFolder changed;
  std::string same_size = testing::ReadFileOrDie(pictures + "/cat/1.png");
  same_size.back() ^= 1;
  changed.Write("cat/1.png", same_size);
  ASSERT_TRUE(CopyIntoStore(changed.path(), "cat/1.png", *store).ok());
  EXPECT_THAT(run_to(6), HasSubstr(kNotice));
}

TEST_F(BucketCheckpoint, ABucketThatIsNotThereEndsTheJobAtOnce) {
  for (const char* lock : {"Exclusive", "None"}) {
    LocalRun run(
        SmallJobYaml(),
        SlowJob({absl::StrCat("training.checkpoint={uri: 's3://other-bucket/checkpoints', lock: ",
                              lock, "}"),
                 "runPolicy.maxRestarts=0"}),
        Access());
    const ProgramResult result = run.Wait(seconds(90));
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_THAT(result.output, HasSubstr("s3://other-bucket/checkpoints"));
    EXPECT_THAT(result.output, HasSubstr("NoSuchBucket"));
  }
}

}  // namespace
}  // namespace hetero::storage
