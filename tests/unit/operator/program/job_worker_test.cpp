#include "operator/program/job_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "api/job_resource.h"
#include "base/fake_clock.h"
#include "operator/reconcile/project.h"
#include "tests/unit/operator/controller/watched_api.h"
#include "tests/unit/operator/kube/fake_transport.h"

namespace hetero::program {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kStatusPath[] =
    "/apis/training.hetero.dev/v1alpha1/namespaces/team/heterotrainingjobs/vit/status";

// A job that cannot run: its pass is a status and an event, and there it ends.
json WrongJob() {
  return {{"apiVersion", api::kApiVersion},
          {"kind", api::kKind},
          {"metadata",
           {{"namespace", "team"},
            {"name", "vit"},
            {"uid", "uid-vit"},
            {"resourceVersion", "1"},
            {"generation", 1}}},
          {"spec", {{"dataset", 7}}}};
}

kube::Response Accept(const kube::Request& request) {
  return kube::JsonReply(request.method == "POST" ? 201 : 200, json::parse(request.body));
}

class JobWorkerTest : public ::testing::Test {
 protected:
  JobWorkerTest() {
    options_.identity = "operator-0";
    options_.workers = 2;
    identity_ = *reconcile::IssueOperatorIdentity(clock_.WallNow());
    transport_.Always([this](const kube::Request& request, std::stop_token) {
      asked_.Add(request.method + " " + request.path);
      return Accept(request);
    });
    event_transport_.Always([this](const kube::Request& request, std::stop_token) {
      events_.Add(request.body);
      return Accept(request);
    });
  }
  void PutJob() { jobs_.Put({"team", "vit"}, reconcile::ProjectJob(WrongJob(), nullptr)); }
  std::future<void> Run() {
    return std::async(std::launch::async, [this] {
      worker_.Run({.jobs = &jobs_,
                   .pods = &pods_,
                   .services = &objects_,
                   .config_maps = &objects_,
                   .network_policies = &objects_},
                  identity_, stop_.get_token());
    });
  }

  base::FakeClock clock_;
  metrics::Registry registry_;
  OperatorOptions options_;
  reconcile::OperatorIdentity identity_;
  Happened asked_;
  Happened events_;
  kube::FakeTransport transport_;
  kube::FakeTransport event_transport_;
  kube::Client client_{transport_, clock_, registry_, {.qps = 0}};
  kube::Client event_client_{event_transport_, clock_, registry_, {.qps = 0}};
  kube::Store<plan::ObservedJob> jobs_;
  kube::Store<plan::ObservedPod> pods_;
  kube::Store<plan::ObservedObject> objects_;
  std::stop_source stop_;
  JobWorker worker_{options_, client_, event_client_, clock_, registry_};
};

// As the caches do while another process leads.
TEST_F(JobWorkerTest, KeysThatComeBeforeItRunsWait) {
  PutJob();
  worker_.Enqueue("team/vit");
  EXPECT_TRUE(transport_.requests().empty());
  auto ran = Run();
  EXPECT_THAT(asked_.Take(1), Contains(std::string("PUT ") + kStatusPath));
  stop_.request_stop();
  ran.get();
}

TEST_F(JobWorkerTest, EventsGoThroughTheirOwnClientInTheNameOfThisProcess) {
  PutJob();
  auto ran = Run();
  worker_.Enqueue("team/vit");
  const auto events = events_.Take(1);
  ASSERT_FALSE(events.empty());
  const json event = json::parse(events[0]);
  EXPECT_EQ(event["reportingInstance"], "operator-0");
  EXPECT_EQ(event["regarding"]["uid"], "uid-vit");
  stop_.request_stop();
  ran.get();
  for (const kube::Request& request : transport_.requests()) {
    EXPECT_THAT(request.path, Not(HasSubstr("events")));
  }
}

TEST_F(JobWorkerTest, AJobThatIsGoneIsNothingToDo) {
  auto ran = Run();
  worker_.Enqueue("team/gone");
  PutJob();
  worker_.Enqueue("team/vit");
  asked_.Take(1);
  stop_.request_stop();
  ran.get();
  for (const kube::Request& request : transport_.requests()) {
    EXPECT_THAT(request.path, Not(HasSubstr("gone")));
  }
}

TEST_F(JobWorkerTest, AStopWaitsForThePassUnderWay) {
  std::promise<void> answer;
  const std::shared_future<void> gate = answer.get_future().share();
  transport_.Always([&](const kube::Request& request, std::stop_token) {
    asked_.Add(request.path);
    gate.wait();
    return Accept(request);
  });
  PutJob();
  auto ran = Run();
  worker_.Enqueue("team/vit");
  EXPECT_THAT(asked_.Take(1), Contains(kStatusPath));
  stop_.request_stop();
  EXPECT_EQ(ran.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  answer.set_value();
  ran.get();
  worker_.Enqueue("team/vit");  // nobody takes it any more
  EXPECT_EQ(transport_.requests().size(), 1u);
}

// It lasted up to its own 30 s, longer than the process may take to stop: it was killed, and the
// lease kept the next leader waiting.
TEST_F(JobWorkerTest, AWriteThatHangsDoesNotOutlastTheStop) {
  std::atomic<bool> ended_by_stop = false;
  transport_.Always(
      [&](const kube::Request& request, std::stop_token stop) -> absl::StatusOr<kube::Response> {
        asked_.Add(request.path);
        ended_by_stop = !base::Clock::Real().SleepFor(std::chrono::seconds(10), std::move(stop));
        return absl::CancelledError("stopped");
      });
  PutJob();
  auto ran = Run();
  worker_.Enqueue("team/vit");
  EXPECT_THAT(asked_.Take(1), Contains(kStatusPath));
  stop_.request_stop();
  ran.get();
  EXPECT_TRUE(ended_by_stop);
}

TEST_F(JobWorkerTest, ARenewedIdentityMayComeAtAnyTime) {
  const auto renewed = reconcile::RenewOperatorIdentity(identity_, clock_.WallNow());
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  worker_.UseCertificate(*renewed);
  PutJob();
  auto ran = Run();
  worker_.Enqueue("team/vit");
  asked_.Take(1);
  worker_.UseCertificate(*renewed);
  stop_.request_stop();
  ran.get();
  worker_.UseCertificate(*renewed);
}

}  // namespace
}  // namespace hetero::program
