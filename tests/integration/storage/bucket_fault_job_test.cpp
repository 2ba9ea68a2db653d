// Whole jobs whose store answers as busy servers and broken networks do, while their CPU workers
// are killed; and whose dataset changes or goes while they run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "tests/integration/storage/bucket_job.h"
#include "tests/integration/storage/fault_proxy.h"

namespace hetero::storage {
namespace {

using Fault = FaultProxy::Fault;
using ::testing::HasSubstr;
using testing::LocalRun;
using testing::ProgramResult;

constexpr int kEpochs = 40;
constexpr int kSamples = 12 * kEpochs;

// Stretched by waiting, so that it can be struck in the middle on a busy machine.
std::vector<std::string> Stretched() {
  return {"--input-only",
          "--set",
          absl::StrCat("training.epochs=", kEpochs),
          "--set",
          "runPolicy.maxRestarts=20",
          "--set",
          "pipeline=[{op: Decode}, {op: Resize, size: {height: 8, width: 8}}, {op: Delay, "
          "milliseconds: 20}, {op: HorizontalFlip}, {op: Normalize}]"};
}

class BucketFaultJob : public BucketJob {
 protected:
  // Of the same pictures in a folder, when nothing happens; computed once.
  static const std::string& FolderDigest() {
    static const std::string digest = [] {
      LocalRun run(ManifestOf(absl::StrCat("file://", kDatasets, "image_folder")), Stretched());
      const ProgramResult result = run.Wait(kJobDeadline);
      EXPECT_EQ(result.exit_code, 0) << result.output;
      return run.report().value("streamDigest", "");
    }();
    return digest;
  }
  static std::vector<std::string> AccessThrough(const FaultProxy& proxy) {
    std::vector<std::string> access = Access(S3Server::kSecret);
    access.back() = "AWS_ENDPOINT_URL=" + proxy.url();
    return access;
  }
  // Waits for so many more requests.
  static bool AwaitRequests(LocalRun& run, const FaultProxy& proxy, int more) {
    const int wanted = proxy.requests() + more;
    const auto end = std::chrono::steady_clock::now() + kJobDeadline;
    while (proxy.requests() < wanted && std::chrono::steady_clock::now() < end) {
      if (!run.program().running()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return proxy.requests() >= wanted;
  }
};

struct FaultCase {
  const char* name;
  std::function<Fault(int number)> choose;
  std::optional<bool> retried = true;  // nothing: others may have served the ticket by then
};

void PrintTo(const FaultCase& fault, std::ostream* out) { *out << fault.name; }

// Every third request.
std::function<Fault(int)> Often(Fault fault) {
  return [fault](int number) { return number % 3 == 1 ? fault : Fault::kNone; };
}

class Faults : public BucketFaultJob, public ::testing::WithParamInterface<FaultCase> {};

TEST_P(Faults, AndKilledWorkersLeaveTheStreamAsItIs) {
  const FaultProxy proxy(server_->endpoint(), GetParam().choose);
  LocalRun run(ManifestOf("s3://bucket/web_dataset"), Stretched(), AccessThrough(proxy));
  for (const char* worker : {"cpu-0", "cpu-1", "cpu-0"}) {
    ASSERT_TRUE(AwaitRequests(run, proxy, 60)) << "it ended before " << worker << " was killed";
    ASSERT_EQ(kill(run.PidOf(worker), SIGKILL), 0) << worker;
  }
  const ProgramResult result = run.Wait(kJobDeadline);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const nlohmann::json report = run.report();
  EXPECT_EQ(report["streamDigest"], FolderDigest());
  EXPECT_EQ(report["samplesConsumed"], kSamples);
  if (GetParam().retried) {
    EXPECT_EQ(report["storage"]["retries"] > 0, *GetParam().retried) << report["storage"];
  }
}

// Fewer in a row than one request is tried, which may be the only one.
Fault Burst(int number) { return number % 40 < 8 ? Fault::kSlowDown : Fault::kNone; }
Fault SilentSpell(int number) {
  return number >= 200 && number < 220 ? Fault::kSilence : Fault::kNone;
}
Fault Late(int) {
  std::this_thread::sleep_for(std::chrono::milliseconds(35));
  return Fault::kNone;
}

INSTANTIATE_TEST_SUITE_P(OfStores, Faults,
                         ::testing::Values(FaultCase{"SlowDownInBursts", Burst},
                                           FaultCase{"ServerError", Often(Fault::kServerError)},
                                           FaultCase{"ResetInTheBody", Often(Fault::kCutBody)},
                                           FaultCase{"ShortBody", Often(Fault::kLessBody)},
                                           FaultCase{"LongBody", Often(Fault::kMoreBody)},
                                           FaultCase{"WrongRange", Often(Fault::kOtherRange)},
                                           FaultCase{"NoReply", Often(Fault::kNoReply)},
                                           FaultCase{"ASpellOfSilence", SilentSpell,
                                                     /*retried=*/std::nullopt},
                                           FaultCase{"Late", Late, /*retried=*/std::nullopt}),
                         [](const auto& info) { return info.param.name; });

// A copy of the golden shards, of which one can be written over.
class ChangingShards : public BucketFaultJob {
 protected:
  ChangingShards() {
    for (const auto& entry :
         std::filesystem::directory_iterator(absl::StrCat(kDatasets, "web_dataset"))) {
      if (entry.path().extension() != ".tar") continue;
      name_ = absl::StrCat("changing/", entry.path().filename().string());
      bytes_ = testing::ReadFileOrDie(entry.path());
      Put(name_, bytes_);
    }
  }
  // Of the same size: a byte of the first picture, which lies behind the head of its entry.
  void WriteOver() {
    bytes_[600] = static_cast<char>(bytes_[600] ^ 1);
    Put(name_, bytes_);
  }
  std::string uri() const { return "s3://bucket/" + name_; }

  const FaultProxy proxy_{server_->endpoint(), [](int) { return Fault::kNone; }};
  std::string name_, bytes_;
};

TEST_F(ChangingShards, AreNamed) {
  LocalRun run(ManifestOf("s3://bucket/changing"), Stretched(), AccessThrough(proxy_));
  ASSERT_TRUE(AwaitRequests(run, proxy_, 60));
  WriteOver();
  const ProgramResult result = run.Wait(kJobDeadline);
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(run.report()["message"].get<std::string>(), HasSubstr(uri()));
}

// A worker that begins when a shard was written over sees nothing but the new bytes, at the same
// places.
TEST_F(ChangingShards, AreNotReadByWorkersThatBeginLater) {
  std::vector<std::string> arguments = Stretched();
  arguments.insert(arguments.end(), {"--set", "roles.cpu.replicas=1"});
  LocalRun run(ManifestOf("s3://bucket/changing"), arguments, AccessThrough(proxy_));
  ASSERT_TRUE(AwaitRequests(run, proxy_, 60));
  const pid_t worker = run.PidOf("cpu-0");
  ASSERT_EQ(kill(worker, SIGSTOP), 0);  // nobody begins before the shard is another one
  WriteOver();
  ASSERT_EQ(kill(worker, SIGKILL), 0);
  const ProgramResult result = run.Wait(kJobDeadline);
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(run.report()["message"].get<std::string>(), HasSubstr(uri()));
}

TEST_F(BucketFaultJob, ABucketThatVanishesIsNamed) {
  const FaultProxy proxy(server_->endpoint(), [](int) { return Fault::kNone; });
  server_->MakeBucket("vanishing");
  const auto store = OpenWritableStore("s3://vanishing", server_->Options());
  ASSERT_TRUE(store.ok()) << store.status();
  for (const std::string& name : Pictures()) {
    auto writer = (*store)->Create(name);
    ASSERT_TRUE(writer.ok());
    const std::string bytes =
        testing::ReadFileOrDie(absl::StrCat(kDatasets, "image_folder/", name));
    ASSERT_TRUE(
        (*writer)->Append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}).ok());
    ASSERT_TRUE((*writer)->Close().ok());
  }
  LocalRun run(ManifestOf("s3://vanishing"), Stretched(), AccessThrough(proxy));
  ASSERT_TRUE(AwaitRequests(run, proxy, 60));
  server_->RemoveBucket("vanishing");
  const ProgramResult result = run.Wait(kJobDeadline);
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(run.report()["message"].get<std::string>(), HasSubstr("s3://vanishing/"));
}

}  // namespace
}  // namespace hetero::storage
