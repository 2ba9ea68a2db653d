// Jobs whose store answers late, or says that it is asked too often.
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "tests/integration/findings/cause.h"
#include "tests/integration/storage/bucket_job.h"
#include "tests/integration/storage/fault_proxy.h"

namespace hetero::storage {
namespace {

using testing::Cause;
using testing::JobSetup;

using Fault = FaultProxy::Fault;

// Of small pictures: a request of each costs its time and no more. Many are underway at once.
class StorageCauses : public BucketJob {
 protected:
  static void SetUpTestSuite() {
    BucketJob::SetUpTestSuite();
    const testing::TemporaryFolder folder;
    Expect(testing::RunProgram(
        "hetero-runtime", {"make-dataset", "--classes", "2", "--samples", "512", "--size", "16",
                           "--seed", "5", folder / "pictures"}));
    testing::ProgramRun pack("hetero-runtime",
                             {"pack", folder / "pictures/train", "s3://bucket/shards"},
                             Access(S3Server::kSecret));
    Expect(pack.Wait(kJobDeadline));
  }
  static void Expect(const testing::ProgramResult& result) {
    ASSERT_EQ(result.exit_code, 0) << result.output;
  }

  static Cause OfStore(const std::string& name, const FaultProxy& proxy) {
    std::vector<std::string> access = Access(S3Server::kSecret);
    access.back() = "AWS_ENDPOINT_URL=" + proxy.url();
    return {.name = name,
            .rule = "StorageBound",
            .job = {.settings = {"dataset={uri: 's3://bucket/shards'}",
                                 "pipeline=[{op: Decode}, {op: Resize, size: {height: 16, width: "
                                 "16}}, {op: Normalize}]",
                                 "training.model.name=paced_10", "training.maxSteps=300"},
                    .environment = access},
            .field = "dataset.shuffle.mode",
            .symptom = [](const nlohmann::json& report) {
              EXPECT_GT(report["waitSeconds"]["workers"].get<double>(),
                        0.5 * report["trainSeconds"].get<double>());
              EXPECT_GT(report["storage"]["requests"].get<int>(), 300) << report["storage"];
            }};
  }
};

TEST_F(StorageCauses, ALateStoreIsNamedAndFewerRequestsHelp) {
  const FaultProxy proxy(server_->endpoint(), [](int) {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    return Fault::kNone;
  });
  ExpectFoundAndHelped(OfStore("ALateStore", proxy));
}

// Answers so many requests in a second, and asks the others to slow down.
class Throttle {
 public:
  Fault Choose() {
    constexpr double kPerSecond = 40;
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> since = now - last_;
    last_ = now;
    left_ = std::min(kPerSecond / 2, left_ + since.count() * kPerSecond);
    if (left_ < 1) return Fault::kSlowDown;
    left_ -= 1;
    return Fault::kNone;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  double left_ = 0;
};

TEST_F(StorageCauses, AThrottlingStoreIsNamedAndFewerRequestsHelp) {
  Throttle throttle;
  const FaultProxy proxy(server_->endpoint(), [&throttle](int) { return throttle.Choose(); });
  Cause cause = OfStore("AThrottlingStore", proxy);
  // In blocks it asks less than is answered.
  cause.job.settings.insert(cause.job.settings.end(),
                            {"training.model.name=paced_40", "training.maxSteps=60"});
  cause.symptom = [](const nlohmann::json& report) {
    EXPECT_GT(report["storage"]["retries"].get<int>(), 50) << report["storage"];
  };
  ExpectFoundAndHelped(cause);
}

}  // namespace
}  // namespace hetero::storage
