#include "cli/object_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/operator/controller/watched_api.h"

namespace hetero::cli {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kPath[] = "/api/v1/namespaces/team/pods";
constexpr std::chrono::seconds kLimit{60};

json Versioned(const std::string& name, int version) {
  return {{"metadata",
           {{"name", name}, {"namespace", "team"}, {"resourceVersion", std::to_string(version)}}}};
}

class FeedChangesTest : public ::testing::Test {
 protected:
  FeedChangesTest() {
    api_.SetList(kPath, {Versioned("a", 1), Versioned("b", 1)});
    api_.Hold(kPath);
    feed_.emplace(client_, clock_,
                  kube::Watcher::Options{.resource = kube::kPods, .name_space = "team"});
    changes_.emplace(*feed_);
  }
  // "a:2" came or changed, "a:2 gone" went.
  std::vector<std::string> Take() {
    std::vector<std::string> texts;
    for (const FeedChanges::Change& change : changes_->Take()) {
      const json& metadata = change.object["metadata"];
      texts.push_back(metadata.value("name", "") + ":" + metadata.value("resourceVersion", "") +
                      (change.gone ? " gone" : ""));
    }
    return texts;
  }
  bool Await(const std::function<bool()>& is) {
    const base::Instant limit = clock_.Now() + kLimit;
    while (!is()) {
      if (clock_.Now() > limit) return false;
      std::this_thread::yield();
    }
    return true;
  }
  void Release() {
    api_.Release(kPath);
    ASSERT_TRUE(Await([&] { return feed_->synced(); }));
  }
  // Sends the event and waits until the feed has taken it in.
  void Send(const std::string& type, const json& object) {
    const int64_t before = feed_->version();
    api_.Send(kPath, type, object);
    ASSERT_TRUE(Await([&] { return feed_->version() > before; }));
  }

  base::Clock& clock_ = base::Clock::Real();
  program::WatchedApi api_;
  metrics::Registry registry_;
  kube::Client client_{api_, clock_, registry_, {}};
  std::optional<ObjectFeed> feed_;
  std::optional<FeedChanges> changes_;
};

TEST_F(FeedChangesTest, EachLookTellsWhatIsDifferent) {
  EXPECT_THAT(Take(), IsEmpty());
  Release();
  EXPECT_THAT(Take(), ElementsAre("a:1", "b:1"));
  EXPECT_THAT(Take(), IsEmpty());
  Send("MODIFIED", Versioned("b", 2));
  Send("ADDED", Versioned("c", 3));
  Send("DELETED", Versioned("a", 4));
  EXPECT_THAT(Take(), ElementsAre("b:2", "c:3", "a:1 gone"));
  EXPECT_THAT(Take(), IsEmpty());
  Send("ADDED", Versioned("d", 5));
  Send("DELETED", Versioned("d", 6));
  EXPECT_THAT(Take(), IsEmpty()) << "it came and went between two looks";
  EXPECT_EQ(changes_->objects().size(), 2u);
}

TEST_F(FeedChangesTest, WhatHappensDuringALookIsNotLost) {
  Release();
  std::map<std::string, std::string> told;  // the last word about each
  const auto look = [&] {
    for (const std::string& text : Take()) told[text.substr(0, text.find(':'))] = text;
  };
  for (int i = 0; i < 300; ++i) {
    const std::string name = "c" + std::to_string(i);
    api_.Send(kPath, "ADDED", Versioned(name, 2));
    api_.Send(kPath, "MODIFIED", Versioned(name, 3));
    ASSERT_TRUE(Await([&] {
      look();
      return told[name] == name + ":3";
    })) << told[name];
    api_.Send(kPath, "DELETED", Versioned(name, 4));
    ASSERT_TRUE(Await([&] {
      look();
      return told[name] == name + ":3 gone";
    })) << told[name];
  }
}

}  // namespace
}  // namespace hetero::cli
