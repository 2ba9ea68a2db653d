#include "operator/kube/informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "fake_transport.h"
#include "instant_clock.h"

namespace hetero::kube {
namespace {

using ::testing::ElementsAre;

struct Kept {
  std::string owner;
  std::string version;
};

nlohmann::json Pod(const std::string& name, const std::string& version,
                   const std::string& owner = "o") {
  return {{"metadata", {{"namespace", "n"}, {"name", name}, {"resourceVersion", version}}},
          {"owner", owner}};
}
Response Page(const std::vector<nlohmann::json>& items, const std::string& version) {
  return JsonReply(200, {{"metadata", {{"resourceVersion", version}}}, {"items", items}});
}
std::string Line(const std::string& type, const nlohmann::json& object) {
  return nlohmann::json{{"type", type}, {"object", object}}.dump();
}

class InformerTest : public ::testing::Test {
 protected:
  // Objects owned by "skip" are left out; those of an unchanged version are kept as they are.
  Informer<Kept>::Value Project(const nlohmann::json& object,
                                const Informer<Kept>::Value& previous) {
    if (object.value("owner", "") == "throw") throw std::out_of_range("no such field");
    Kept kept{object.value("owner", ""), object["metadata"].value("resourceVersion", "")};
    if (kept.owner == "skip") return nullptr;
    if (previous && previous->version == kept.version) return previous;
    return std::make_shared<const Kept>(std::move(kept));
  }
  void OnChange(const ObjectKey& key, const Informer<Kept>::Value& before,
                const Informer<Kept>::Value& now) {
    told_.push_back(key.name + ":" + (before ? before->version : "") + ">" +
                    (now ? now->version : ""));
    EXPECT_EQ(informer_.store().Get(key), now);  // the store has already changed
  }
  // Runs until the script is used up.
  void Run() {
    transport_.Always([this](const Request&, std::stop_token) {
      stop_.request_stop();
      return absl::StatusOr<Response>(absl::CancelledError("stopped"));
    });
    transport_.AlwaysStream([this](const Request&, const Transport::OnLine&, std::stop_token) {
      stop_.request_stop();
      return absl::StatusOr<Response>(absl::CancelledError("stopped"));
    });
    informer_.Run(stop_.get_token());
  }

  InstantClock clock_;
  metrics::Registry registry_;
  FakeTransport transport_;
  Client client_{transport_, clock_, registry_, {.qps = 0}};
  std::stop_source stop_;
  std::vector<std::string> told_;
  Informer<Kept> informer_{
      client_,
      clock_,
      registry_,
      {.resource = kPods},
      [this](const auto& o, const auto& p) { return Project(o, p); },
      [this](const auto& k, const auto& b, const auto& n) { OnChange(k, b, n); },
      [](const Kept& kept) { return kept.owner; }};
};

TEST_F(InformerTest, IsSyncedOnlyAfterTheWholeFirstList) {
  transport_.Then([this](const Request&, std::stop_token) {
    EXPECT_FALSE(informer_.synced());
    return Response(JsonReply(200, {{"metadata", {{"resourceVersion", "5"}, {"continue", "c"}}},
                                    {"items", {Pod("a", "1")}}}));
  });
  transport_.Then([this](const Request&, std::stop_token) {
    EXPECT_FALSE(informer_.synced());
    EXPECT_EQ(informer_.store().size(), 1u);
    return Page({Pod("b", "2")}, "5");
  });
  Run();
  EXPECT_TRUE(informer_.synced());
  EXPECT_THAT(told_, ElementsAre("a:>1", "b:>2"));
}

TEST_F(InformerTest, WhatVanishedUnseenIsAnnouncedAfterTheRelist) {
  transport_.Then(Page({Pod("a", "1"), Pod("b", "2"), Pod("c", "3")}, "5"));
  transport_.ThenLines({Line("ERROR", StatusObject(410, "Expired", "too old"))});
  transport_.Then(Page({Pod("b", "2"), Pod("c", "9"), Pod("d", "8")}, "10"));
  Run();
  EXPECT_THAT(told_, ElementsAre("a:>1", "b:>2", "c:>3", "c:3>9", "d:>8", "a:1>"));
}

TEST_F(InformerTest, AListThatStartsOverCountsOnlyItsLastRun) {
  transport_.Then(JsonReply(200, {{"metadata", {{"resourceVersion", "5"}, {"continue", "c"}}},
                                  {"items", {Pod("a", "1")}}}));
  transport_.Then(ErrorReply(410, "Expired", "too old"));
  transport_.Then(Page({Pod("b", "6")}, "7"));
  Run();
  EXPECT_THAT(told_, ElementsAre("a:>1", "b:>6", "a:1>"));
}

TEST_F(InformerTest, WhatIsProjectedToNothingIsLeftOutAndLeaves) {
  transport_.Then(Page({Pod("a", "1"), Pod("b", "2", "skip")}, "5"));
  transport_.ThenLines({Line("MODIFIED", Pod("a", "6", "skip")), Line("MODIFIED", Pod("b", "7")),
                        Line("DELETED", Pod("a", "8")), Line("DELETED", Pod("x", "9"))});
  Run();
  EXPECT_THAT(told_, ElementsAre("a:>1", "a:1>", "b:>7"));
}

TEST_F(InformerTest, TheIndexFollowsChangesOfTheGroup) {
  transport_.Then(Page({Pod("a", "1", "x"), Pod("b", "2", "x")}, "5"));
  transport_.ThenLines({Line("MODIFIED", Pod("a", "6", "y"))});
  Run();
  EXPECT_EQ(informer_.store().In("x").size(), 1u);
  ASSERT_EQ(informer_.store().In("y").size(), 1u);
  EXPECT_EQ(informer_.store().In("y")[0]->version, "6");
}

TEST_F(InformerTest, WhatIsNoObjectIsIgnored) {
  transport_.Then(Page({nlohmann::json::object(), {{"metadata", 7}}}, "5"));
  transport_.ThenLines({Line("DELETED", nlohmann::json::object())});
  Run();
  EXPECT_TRUE(informer_.synced());
  EXPECT_THAT(told_, ElementsAre());
}

TEST_F(InformerTest, ReadersRunBesideIt) {
  for (int round = 0; round < 20; ++round) {
    std::vector<nlohmann::json> pods;
    for (int i = round; i < round + 20; ++i) {
      pods.push_back(Pod(std::to_string(i), std::to_string(round), std::to_string(i % 3)));
    }
    transport_.Then(Page(pods, std::to_string(round)));
    transport_.ThenLines({Line("ERROR", StatusObject(410, "Expired", "too old"))});
  }
  std::jthread reader([this](std::stop_token stop) {
    while (!stop.stop_requested()) {
      informer_.synced();
      for (const auto& kept : informer_.store().In("1")) ASSERT_EQ(kept->owner, "1");
    }
  });
  Run();
  EXPECT_EQ(informer_.store().size(), 20u);
}

// It would end the process, and the next one, and the next.
TEST_F(InformerTest, AnObjectThatCannotBeReadIsNamedAndStaysAsItWasKnown) {
  transport_.Then(Page({Pod("a", "1"), Pod("b", "2"), Pod("odd", "3", "throw")}, "7"));
  transport_.ThenLines({Line("MODIFIED", Pod("a", "8", "throw")), Line("ADDED", Pod("c", "9"))},
                       ErrorReply(410, "Expired", "too old"));
  transport_.Then(Page({Pod("a", "8", "throw"), Pod("b", "2"), Pod("c", "9")}, "10"));
  ::testing::internal::CaptureStderr();
  Run();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("n/odd"));
  EXPECT_THAT(told_, ElementsAre("a:>1", "b:>2", "c:>9"));
  EXPECT_EQ(informer_.store().size(), 3u);
  EXPECT_TRUE(informer_.synced());
  EXPECT_EQ(
      registry_.GetCounter("reflector_unreadable_objects_total", "", {{"name", "pods"}}).value(),
      3);
}

}  // namespace
}  // namespace hetero::kube
