#include <gtest/gtest.h>

#include <map>

#include "base/log.h"
#include "model_server.h"
#include "operator/kube/informer.h"

namespace hetero::kube {
namespace {

using Versions = std::map<std::string, int>;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kSeeds = 200;  // there a history takes ten times as long
#else
constexpr int kSeeds = 1000;
#endif

struct History {
  Versions store;
  Versions announced;  // what somebody knows who only listens
  int lists = 0;
  int expired = 0;
};

History Play(uint32_t seed) {
  InstantClock clock;
  metrics::Registry registry;
  FakeTransport transport;
  Client client(transport, clock, registry, {.qps = 0});
  std::stop_source stop;
  ModelServer server(transport, clock, seed, 60, [&] { stop.request_stop(); });
  History history;
  Informer<int> informer(
      client, clock, registry, {.resource = kPods, .page_size = 5},
      [](const nlohmann::json& object, const std::shared_ptr<const int>&) {
        return std::make_shared<const int>(
            std::stoi(object["metadata"]["resourceVersion"].get<std::string>()));
      },
      [&](const ObjectKey& key, const auto& before, const auto& now) {
        const auto known = history.announced.find(key.name);
        EXPECT_EQ(before == nullptr, known == history.announced.end()) << key.name;
        if (before != nullptr && known != history.announced.end()) {
          EXPECT_EQ(*before, known->second) << key.name;
        }
        if (now == nullptr) {
          history.announced.erase(key.name);
        } else {
          history.announced[key.name] = *now;
        }
      });
  informer.Run(stop.get_token());
  EXPECT_TRUE(informer.synced());
  for (const ObjectKey& key : informer.store().Keys()) {
    history.store[key.name] = *informer.store().Get(key);
  }
  EXPECT_EQ(history.store, server.truth());
  EXPECT_EQ(history.announced, server.truth());
  history.lists = server.lists();
  history.expired = server.expired();
  return history;
}

TEST(WatchHistoryTest, WhateverHappensTheStoreEndsAsTheTruthAndEveryChangeIsAnnounced) {
  log::Init("test", log::Level::kOff);
  int lists = 0;
  int expired = 0;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const History history = Play(seed);
    lists += history.lists;
    expired += history.expired;
    if (::testing::Test::HasFailure()) break;
  }
  log::Init("test");
  // The model does what it is for.
  EXPECT_GT(lists, 3 * kSeeds);
  EXPECT_GT(expired, kSeeds);
}

}  // namespace
}  // namespace hetero::kube
