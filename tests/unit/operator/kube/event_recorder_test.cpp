#include "operator/kube/event_recorder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <regex>
#include <set>
#include <thread>

#include "base/fake_clock.h"
#include "fake_transport.h"

namespace hetero::kube {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const ObjectReference kJob = {"training.hetero.dev/v1", "HeteroTrainingJob", "team", "mnist",
                              "uid-1"};

class EventRecorderTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(); }
  void Start() {
    recorder_ = std::make_unique<EventRecorder>(
        client_, clock_, EventRecorder::Options{.controller = "hetero-operator", .instance = "p"});
  }
  void Record(const std::string& note = "ready", const ObjectReference& regarding = kJob) {
    recorder_->Record(regarding, EventType::kNormal, "Ready", "Start", note);
  }
  // Ends the recorder, which writes what is queued, and gives what the server was asked.
  std::vector<Request> Flush() {
    recorder_.reset();
    return transport_.requests();
  }
  void WaitForRequests(size_t count) {
    while (transport_.requests().size() < count) std::this_thread::yield();
  }
  static nlohmann::json Body(const Request& request) { return nlohmann::json::parse(request.body); }

  base::FakeClock clock_;
  metrics::Registry registry_;
  FakeTransport transport_;
  Client client_{transport_, clock_, registry_, {.qps = 0}};
  std::unique_ptr<EventRecorder> recorder_;
};

Response Accept(const Request& request) {
  return JsonReply(request.method == "POST" ? 201 : 200, nlohmann::json::parse(request.body));
}

TEST_F(EventRecorderTest, WritesWhatTheApiAsksFor) {
  transport_.Always([](const Request& request, std::stop_token) { return Accept(request); });
  recorder_->Record(kJob, EventType::kWarning, "PodFailed", "Restart", "pod mnist-gpu-0 failed");
  const auto requests = Flush();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].method, "POST");
  EXPECT_EQ(requests[0].path, "/apis/events.k8s.io/v1/namespaces/team/events");
  const nlohmann::json event = Body(requests[0]);
  // 2026-01-01 in nanoseconds since 1970.
  EXPECT_EQ(event["metadata"]["name"], "mnist.18867251edfa0000");
  EXPECT_EQ(event["metadata"]["namespace"], "team");
  EXPECT_EQ(event["eventTime"], "2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "PodFailed");
  EXPECT_EQ(event["action"], "Restart");
  EXPECT_EQ(event["note"], "pod mnist-gpu-0 failed");
  EXPECT_EQ(event["reportingController"], "hetero-operator");
  EXPECT_EQ(event["reportingInstance"], "p");
  EXPECT_EQ(event["regarding"], (nlohmann::json{{"apiVersion", "training.hetero.dev/v1"},
                                                {"kind", "HeteroTrainingJob"},
                                                {"namespace", "team"},
                                                {"name", "mnist"},
                                                {"uid", "uid-1"}}));
  EXPECT_FALSE(event.contains("series"));
}

TEST_F(EventRecorderTest, ObjectsWithoutNamespaceReportToDefault) {
  transport_.Always([](const Request& request, std::stop_token) { return Accept(request); });
  Record("down", {"v1", "Node", "", "node-1", ""});
  const auto requests = Flush();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].path, "/apis/events.k8s.io/v1/namespaces/default/events");
  EXPECT_FALSE(Body(requests[0])["regarding"].contains("namespace"));
}

TEST_F(EventRecorderTest, NamesAreUniqueEvenAtOneInstantAndValidForLongObjects) {
  transport_.Always([](const Request& request, std::stop_token) { return Accept(request); });
  ObjectReference object = kJob;
  object.name = std::string(235, 'a') + ".-" + std::string(20, 'b');
  for (int i = 0; i < 20; ++i) Record("note " + std::to_string(i), object);
  std::set<std::string> names;
  for (const Request& request : Flush()) names.insert(Body(request)["metadata"]["name"]);
  EXPECT_EQ(names.size(), 20u);
  const std::regex subdomain("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
  for (const std::string& name : names) {
    EXPECT_LE(name.size(), 253u);
    EXPECT_TRUE(std::regex_match(name, subdomain)) << name;
  }
}

TEST_F(EventRecorderTest, RepeatsWithinSixMinutesBecomeASeries) {
  transport_.Always([](const Request& request, std::stop_token) { return Accept(request); });
  Record();
  clock_.Advance(minutes(6));
  Record();
  clock_.Advance(minutes(6));
  Record();
  clock_.Advance(minutes(6) + seconds(1));
  Record();
  Record("another note");
  const auto requests = Flush();
  ASSERT_EQ(requests.size(), 5u);
  const std::string path =
      requests[0].path + "/" + Body(requests[0])["metadata"]["name"].get<std::string>();
  EXPECT_EQ(requests[1].method, "PATCH");
  EXPECT_EQ(requests[1].path, path);
  EXPECT_EQ(Body(requests[1]),
            (nlohmann::json{
                {"series", {{"count", 2}, {"lastObservedTime", "2026-01-01T00:06:00.000000Z"}}}}));
  EXPECT_EQ(Body(requests[2])["series"]["count"], 3);
  EXPECT_EQ(requests[3].method, "POST");
  EXPECT_EQ(requests[4].method, "POST");
}

TEST_F(EventRecorderTest, SeriesWhoseEventIsGoneIsMadeAgain) {
  transport_.Then(JsonReply(201, nlohmann::json::object()));
  transport_.Then(ErrorReply(404, "NotFound", "gone"));
  transport_.Then(JsonReply(201, nlohmann::json::object()));
  Record();
  Record();
  const auto requests = Flush();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[2].method, "POST");
  EXPECT_EQ(Body(requests[2])["series"]["count"], 2);
}

TEST_F(EventRecorderTest, EachObjectHas25WritesAndOneMorePer300Seconds) {
  transport_.Always([](const Request& request, std::stop_token) { return Accept(request); });
  for (int i = 0; i < 100; ++i) Record("note " + std::to_string(i));
  ObjectReference other = kJob;
  other.uid = "uid-2";
  Record("other", other);
  clock_.Advance(seconds(299));
  Record("too early");
  clock_.Advance(seconds(1));
  Record("refilled");
  Record("used up again");
  std::vector<std::string> notes;
  for (const Request& request : Flush()) notes.push_back(Body(request)["note"]);
  ASSERT_EQ(notes.size(), 27u);
  EXPECT_EQ(notes[24], "note 24");
  EXPECT_EQ(notes[25], "other");
  EXPECT_EQ(notes[26], "refilled");
}

TEST_F(EventRecorderTest, RepeatsBeyondTheLimitAreStillCounted) {
  transport_.Always([](const Request& request, std::stop_token) { return Accept(request); });
  for (int i = 0; i < 100; ++i) Record();
  clock_.Advance(seconds(300));
  Record();
  const auto requests = Flush();
  ASSERT_EQ(requests.size(), 26u);
  EXPECT_EQ(Body(requests[24])["series"]["count"], 25);
  EXPECT_EQ(Body(requests[25])["series"]["count"], 101);
}

TEST_F(EventRecorderTest, NotesAreCutBetweenCharactersAndMadeValid) {
  transport_.Always([](const Request& request, std::stop_token) { return Accept(request); });
  struct Case {
    std::string note;
    std::string written;
  };
  const std::string euro = "\xE2\x82\xAC";
  const std::vector<Case> cases = {
      {std::string(1024, 'a'), std::string(1024, 'a')},
      {std::string(1025, 'b'), std::string(1024, 'b')},
      {std::string(1022, 'a') + euro, std::string(1022, 'a')},
      {std::string(1021, 'a') + euro + "b", std::string(1021, 'a') + euro},
      {"exit \xFF code", "exit \xEF\xBF\xBD code"},
      {"", ""},
  };
  for (const Case& c : cases) Record(c.note);
  const auto requests = Flush();
  ASSERT_EQ(requests.size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(Body(requests[i])["note"], cases[i].written);
}

TEST_F(EventRecorderTest, TriesAgainWhenTheServerIsAwayAndNotWhenItRefuses) {
  std::atomic<int> asked = 0;
  transport_.Always([&](const Request& request, std::stop_token) -> absl::StatusOr<Response> {
    if (++asked <= 2) return absl::UnavailableError("connection refused");
    return Accept(request);
  });
  Record();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(clock_.WaitForSleepers(1));
    clock_.Advance(seconds(2));
  }
  WaitForRequests(3);
  EXPECT_EQ(Flush().size(), 3u);

  transport_.Always([](const Request&, std::stop_token) {
    return ErrorReply(403, "Forbidden", "the namespace is being terminated");
  });
  Start();
  Record();
  EXPECT_EQ(Flush().size(), 4u);
}

TEST_F(EventRecorderTest, GivesUpAfterFiveTriesAndStartsTheEventAnew) {
  transport_.Always([](const Request&, std::stop_token) -> absl::StatusOr<Response> {
    return absl::UnavailableError("connection refused");
  });
  Record();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(clock_.WaitForSleepers(1));
    clock_.Advance(seconds(10));
  }
  WaitForRequests(5);
  transport_.Always([](const Request& request, std::stop_token) { return Accept(request); });
  Record();
  const auto requests = Flush();
  ASSERT_EQ(requests.size(), 6u);
  EXPECT_EQ(requests.back().method, "POST");
  EXPECT_FALSE(Body(requests.back()).contains("series"));
}

TEST_F(EventRecorderTest, HoldsAThousandAndDropsTheRest) {
  std::promise<void> let_go;
  std::shared_future<void> gate = let_go.get_future().share();
  std::promise<void> reached;
  std::atomic<bool> first = true;
  transport_.Always([&](const Request& request, std::stop_token) {
    if (first.exchange(false)) reached.set_value();
    gate.wait();
    return Accept(request);
  });
  ObjectReference object = kJob;
  object.uid = "first";
  Record("first", object);
  reached.get_future().wait();  // it is out of the queue
  for (int i = 0; i < 1500; ++i) {
    object.uid = std::to_string(i);
    Record("ready", object);
  }
  let_go.set_value();
  EXPECT_EQ(Flush().size(), 1001u);
}

TEST_F(EventRecorderTest, DestructorAbandonsARequestWithoutAnswerAfterTwoSeconds) {
  std::atomic<int> abandoned = 0;
  transport_.Always([&](const Request&, std::stop_token stop) -> absl::StatusOr<Response> {
    std::promise<void> stopped;
    const std::stop_callback on_stop(stop, [&] { stopped.set_value(); });
    stopped.get_future().wait();
    ++abandoned;
    return absl::CancelledError("stopped");
  });
  for (int i = 0; i < 10; ++i) Record("note " + std::to_string(i));
  WaitForRequests(1);
  std::jthread ending([&] { recorder_.reset(); });
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  clock_.Advance(seconds(2) - std::chrono::nanoseconds(1));
  EXPECT_EQ(clock_.sleepers(), 1);  // it still waits
  clock_.Advance(std::chrono::nanoseconds(1));
  ending.join();
  EXPECT_EQ(abandoned, 1);
  EXPECT_EQ(transport_.requests().size(), 1u);
}

TEST_F(EventRecorderTest, EndsAtOnceWhenTheServerIsAway) {
  transport_.Always([](const Request&, std::stop_token) -> absl::StatusOr<Response> {
    return absl::UnavailableError("connection refused");
  });
  for (int i = 0; i < 10; ++i) Record("note " + std::to_string(i));
  EXPECT_EQ(Flush().size(), 10u);  // one try each, no waiting: this clock stands still
}

TEST_F(EventRecorderTest, ManyThreadsMayRecord) {
  transport_.Always([](const Request& request, std::stop_token) { return Accept(request); });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 100; ++i) {
          ObjectReference object = kJob;
          object.uid = std::to_string(t) + "-" + std::to_string(i / 10);
          Record("note " + std::to_string(i), object);
        }
      });
    }
  }
  EXPECT_EQ(Flush().size(), 400u);
}

}  // namespace
}  // namespace hetero::kube
