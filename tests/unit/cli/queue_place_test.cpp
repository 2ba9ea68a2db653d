#include "cli/queue_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/kube/fake_transport.h"
#include "tests/unit/operator/kube/instant_clock.h"

namespace hetero::cli {
namespace {

using nlohmann::json;

const kube::Response kNoSuchPath{.status = 404, .body = "404 page not found\n"};

JobView QueuedJob(const std::string& queue) {
  return *ViewOf({{"metadata",
                   {{"name", "vit"},
                    {"namespace", "team"},
                    {"uid", "uid-vit"},
                    {"labels", {{"kueue.x-k8s.io/queue-name", queue}}}}},
                  {"status",
                   {{"conditions",
                     {{{"type", "Queued"},
                       {"status", "True"},
                       {"reason", "Pending"},
                       {"message", ""},
                       {"lastTransitionTime", "2026-01-01T00:01:00Z"}}}}}}});
}

class QueuePlacesTest : public ::testing::Test {
 protected:
  // The calls that a look at the jobs of these queues makes, and the places found.
  size_t Calls(const std::vector<std::string>& queues) {
    std::vector<JobView> jobs;
    for (const std::string& queue : queues) jobs.push_back(QueuedJob(queue));
    std::vector<JobView*> views;
    for (JobView& job : jobs) views.push_back(&job);
    const size_t before = transport_.requests().size();
    places_.Find(views);
    found_.clear();
    for (const JobView& job : jobs) found_.push_back(job.place);
    return transport_.requests().size() - before;
  }
  void Answer(std::function<kube::Response(const std::string& path)> answer) {
    transport_.Always([answer = std::move(answer)](const kube::Request& request, std::stop_token) {
      return answer(request.path);
    });
  }

  kube::InstantClock clock_;
  kube::FakeTransport transport_;
  metrics::Registry registry_;
  kube::Client client_{transport_, clock_, registry_, {}};
  QueuePlaces places_{client_, clock_};
  std::vector<std::string> found_;
};

TEST_F(QueuePlacesTest, AnApiThatIsNotServedIsLeftAlone) {
  Answer([](const std::string&) { return kNoSuchPath; });
  EXPECT_EQ(Calls({"gpus", "cpus"}), 2u) << "both versions, of one queue";
  EXPECT_EQ(Calls({"gpus", "cpus"}), 0u);
  clock_.Advance(std::chrono::seconds(31));
  EXPECT_EQ(Calls({"gpus", "cpus"}), 2u);
}

TEST_F(QueuePlacesTest, QueuesThatAreNotThereOrNotOursAreLeftAloneEach) {
  Answer([](const std::string& path) {
    if (path.find("v1beta2") != std::string::npos) return kNoSuchPath;
    if (path.find("/gone/") != std::string::npos) {
      return kube::ErrorReply(404, "NotFound", "localqueue \"gone\" not found");
    }
    if (path.find("/foreign/") != std::string::npos) {
      return kube::ErrorReply(403, "Forbidden", "not yours");
    }
    const json workload = {
        {"metadata", {{"namespace", "team"}, {"ownerReferences", {{{"uid", "uid-vit"}}}}}},
        {"localQueueName", "gpus"}};
    return kube::JsonReply(200, {{"items", {workload}}});
  });
  EXPECT_EQ(Calls({"gone", "foreign", "gpus"}), 6u);
  EXPECT_THAT(found_, ::testing::ElementsAre("", "", "1st of 1 in gpus"));
  EXPECT_EQ(Calls({"gone", "foreign", "gpus"}), 2u) << "of the one that answers";
  EXPECT_THAT(found_, ::testing::ElementsAre("", "", "1st of 1 in gpus"));
  clock_.Advance(std::chrono::seconds(31));
  EXPECT_EQ(Calls({"gone", "foreign", "gpus"}), 6u);
}

}  // namespace
}  // namespace hetero::cli
