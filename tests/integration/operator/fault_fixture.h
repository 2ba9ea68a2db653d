#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/integration/operator/support/world.h"

// The same job under a hostile network and a mortal operator: always the same end, no pod twice,
// nothing left behind.
namespace hetero::testing {

using std::chrono::seconds;

// One operator that sees one namespace through a proxy of its own, so that many faults can be tried
// side by side.
struct Lane {
  explicit Lane(const std::string& prefix)
      : space(prefix),
        proxy(ControlPlane::Get().ProxyOptions()),
        process({.server = proxy.url(),
                 .arguments = {"--watch-namespaces", space.name(), "--no-leader-elect"},
                 .start = false}) {}

  TestNamespace space;
  ApiProxy proxy;
  OperatorProcess process;
};

// A life with one failure in it: GPU worker 0 dies once, at step 5.
inline json EventfulJob(const std::string& name) {
  return MakeJob(name,
                 {{"steps", 12},
                  {"stepMillis", 20},
                  {"killMember", "gpu-0"},
                  {"killAtStep", 5},
                  {"result", {{"loss", 0.25}}}},
                 2, 2);
}

// Every write that came by, in order: what explains a pod too many.
inline std::string Written(const ApiProxy& proxy) {
  const std::vector<RecordedWrite> writes = proxy.writes();
  std::string text;
  for (const RecordedWrite& write : writes) {
    const auto since =
        std::chrono::duration_cast<std::chrono::milliseconds>(write.time - writes.front().time);
    text += "+" + std::to_string(since.count()) + " ms " + write.request.method + " " +
            write.request.path + " -> " + std::to_string(write.status) + " " +
            write.request.body.substr(0, 1500) + "\n";
  }
  return text;
}

// What every run of EventfulJob must come to, whatever happened on the way.
inline void ExpectTheEnd(Lane& lane, JobUnderTest& job, seconds deadline = seconds(120)) {
  ASSERT_TRUE(job.WaitIs("Succeeded", deadline)) << lane.process.log();
  ASSERT_TRUE(job.WaitGone()) << lane.process.log();
  const json status = job.Status();
  EXPECT_EQ(status.value("restarts", 0), 1) << status.dump(1);
  EXPECT_EQ(status.value("attempt", 0), 1) << status.dump(1);
  EXPECT_EQ(status.value("firstFailure", json::object()).value("pod", ""), job.name() + "-gpu-0");
  EXPECT_EQ(status.value("result", json::object()).value("loss", 0.0), 0.25);
  EXPECT_TRUE(status.value("uncounted", json::array()).empty());
  // No pod twice: each name was accepted once, but for the one that died.
  std::map<std::string, int> accepted;
  for (const RecordedWrite& write : lane.proxy.writes()) {
    if (write.request.method != "POST" || write.status != 201) continue;
    const json body = json::parse(write.request.body, nullptr, false);
    if (body.value("kind", "") == "Pod") ++accepted[body["metadata"]["name"].get<std::string>()];
  }
  for (const auto& [name, count] : accepted) {
    EXPECT_LE(count, name.ends_with("-gpu-0") ? 2 : 1) << name << "\n" << Written(lane.proxy);
  }
}

class Fault : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { World::Get(); }
  ControlPlane& plane_ = ControlPlane::Get();
};

}  // namespace hetero::testing
