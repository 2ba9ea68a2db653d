#include "operator/program/namespaced_informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/fake_clock.h"
#include "tests/unit/operator/controller/watched_api.h"
#include "tests/unit/operator/kube/instant_clock.h"

namespace hetero::program {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

struct Kept {
  std::string owner;
  std::string version;
};

json Pod(const std::string& name_space, const std::string& name, const std::string& version,
         const std::string& owner = "o") {
  return {{"metadata", {{"namespace", name_space}, {"name", name}, {"resourceVersion", version}}},
          {"owner", owner}};
}
const std::string kInA = "/api/v1/namespaces/a/pods";
const std::string kInB = "/api/v1/namespaces/b/pods";

class NamespacedInformerTest : public ::testing::Test {
 protected:
  // Watches until the end of the test.
  void Start(const std::vector<std::string>& namespaces) {
    informer_ = std::make_unique<NamespacedInformer<Kept>>(
        client_, clock_, registry_,
        kube::Watcher::Options{.resource = kube::kPods, .name_space = "ignored"}, namespaces,
        [](const json& object, const auto&) {
          return std::make_shared<const Kept>(
              Kept{object.value("owner", ""), object["metadata"].value("resourceVersion", "")});
        },
        [this](const kube::ObjectKey& key, const auto& before, const auto& now) {
          // Whoever is told finds the change in the store.
          EXPECT_EQ(informer_->store().Get(key), now);
          told_.Add(key.ToString() + ":" + (before ? before->version : "") + ">" +
                    (now ? now->version : ""));
        },
        [](const Kept& kept) { return kept.owner; });
    informer_->AddTo(manager_, namespaces);
    running_ = std::jthread([this](std::stop_token stop) {
      const absl::Status ended = manager_.Start(std::move(stop));
      EXPECT_TRUE(ended.ok()) << ended;
    });
  }
  std::vector<std::string> VersionsOf(const std::string& owner) const {
    std::vector<std::string> versions;
    for (const auto& kept : informer_->store().In(owner)) versions.push_back(kept->version);
    return versions;
  }

  kube::InstantClock clock_;  // of the watchers, whose backoff takes no time
  base::FakeClock manager_clock_;
  metrics::Registry registry_;
  WatchedApi api_;
  kube::Client client_{api_, clock_, registry_, {.qps = 0}};
  controller::Manager manager_{manager_clock_, {}};
  Happened told_;
  std::unique_ptr<NamespacedInformer<Kept>> informer_;
  std::jthread running_;
};

TEST_F(NamespacedInformerTest, WithoutNamespacesAllAreWatchedAtOnce) {
  api_.SetList("/api/v1/pods", {Pod("a", "x", "1"), Pod("b", "y", "2")});
  Start({});
  ASSERT_TRUE(api_.AwaitWatch("/api/v1/pods"));
  EXPECT_THAT(told_.Take(2), ElementsAre("a/x:>1", "b/y:>2"));
  EXPECT_THAT(VersionsOf("o"), ElementsAre("1", "2"));
  EXPECT_EQ(api_.requests().size(), 2u);  // a list and a watch
}

TEST_F(NamespacedInformerTest, OneNamespaceIsWatchedAlone) {
  api_.SetList(kInA, {Pod("a", "x", "1")});
  Start({"a"});
  ASSERT_TRUE(api_.AwaitWatch(kInA));
  EXPECT_EQ(informer_->store().size(), 1u);
  for (const kube::Request& request : api_.requests()) EXPECT_THAT(request.path, HasSubstr(kInA));
}

TEST_F(NamespacedInformerTest, SeveralNamespacesAreOneStore) {
  api_.SetList(kInA, {Pod("a", "x", "1", "p"), Pod("a", "y", "2", "q")});
  api_.SetList(kInB, {Pod("b", "x", "3", "p")});
  Start({"a", "b"});
  ASSERT_TRUE(api_.AwaitWatch(kInA));
  ASSERT_TRUE(api_.AwaitWatch(kInB));
  EXPECT_THAT(told_.Take(3), UnorderedElementsAre("a/x:>1", "a/y:>2", "b/x:>3"));
  EXPECT_EQ(informer_->store().size(), 3u);
  EXPECT_THAT(VersionsOf("p"), ElementsAre("1", "3"));

  api_.Send(kInB, "MODIFIED", Pod("b", "x", "4", "q"));
  EXPECT_THAT(told_.Take(1), ElementsAre("b/x:3>4"));
  EXPECT_THAT(VersionsOf("p"), ElementsAre("1"));
  EXPECT_THAT(VersionsOf("q"), ElementsAre("2", "4"));

  api_.Send(kInA, "DELETED", Pod("a", "x", "5", "p"));
  EXPECT_THAT(told_.Take(1), ElementsAre("a/x:1>"));
  EXPECT_THAT(VersionsOf("p"), ElementsAre());
  EXPECT_EQ(informer_->store().size(), 2u);
  for (const kube::Request& request : api_.requests()) {
    EXPECT_THAT(request.path, HasSubstr("/api/v1/namespaces/"));
    EXPECT_THAT(request.path, Not(HasSubstr("ignored")));
  }
}

TEST_F(NamespacedInformerTest, IsReadyOnlyWhenEachNamespaceIsListed) {
  api_.Hold(kInB);
  Start({"a", "b"});
  ASSERT_TRUE(api_.AwaitWatch(kInA));
  const absl::Status waiting = manager_.Ready();
  EXPECT_THAT(std::string(waiting.message()), HasSubstr("pods in b"));
  EXPECT_THAT(std::string(waiting.message()), Not(HasSubstr("pods in a")));
  api_.Release(kInB);
  ASSERT_TRUE(api_.AwaitWatch(kInB));
  EXPECT_TRUE(manager_.Ready().ok()) << manager_.Ready();
}

TEST_F(NamespacedInformerTest, ARelistOfOneNamespaceRemovesNothingOfAnother) {
  api_.SetList(kInA, {Pod("a", "x", "1"), Pod("a", "y", "2")});
  api_.SetList(kInB, {Pod("b", "x", "3")});
  Start({"a", "b"});
  ASSERT_TRUE(api_.AwaitWatch(kInA));
  ASSERT_TRUE(api_.AwaitWatch(kInB));
  told_.Take(3);
  api_.SetList(kInA, {Pod("a", "y", "9")});
  api_.Expire(kInA);
  ASSERT_TRUE(api_.AwaitWatch(kInA, 2));
  EXPECT_THAT(told_.Take(2), ElementsAre("a/y:2>9", "a/x:1>"));
  EXPECT_THAT(informer_->store().Keys(),
              ElementsAre(kube::ObjectKey{"a", "y"}, kube::ObjectKey{"b", "x"}));
}

}  // namespace
}  // namespace hetero::program
