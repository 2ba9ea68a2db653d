// What a pass of a job of thousands of pods holds.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>

#include "fake_cluster.h"

namespace hetero::reconcile {
namespace {

constexpr int kPods = 1000;
constexpr size_t kTemplateBytes = 200'000;

int64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

// Each pod carries a large annotation, and the server keeps none of them: what lies on the heap
// while one is sent is what is rendered. All of a pass were once rendered before the first was
// sent.
TEST(LargeJob, OneRenderedPodExistsAtATime) {
  FakeCluster cluster;
  const nlohmann::json spec = {
      {"roles",
       {{{"name", "head"}, {"type", "Head"}},
        {{"name", "cpu"},
         {"type", "CPUWorker"},
         {"replicas", kPods},
         {"template",
          {{"metadata", {{"annotations", {{"note", std::string(kTemplateBytes, 'x')}}}}}}}},
        {{"name", "gpu"}, {"type", "GPUWorker"}}}}};
  cluster.CreateJob("vit", spec.dump());
  int sent = 0;
  int64_t least = 0, most = 0;
  cluster.api.SetIntercept([&](const kube::Request& request) -> std::optional<kube::Response> {
    if (request.method != "POST" || !request.path.ends_with("/pods")) return std::nullopt;
    if (request.body.size() < kTemplateBytes) return std::nullopt;
    const int64_t now = HeapBytes();
    least = sent == 0 ? now : std::min(least, now);
    most = std::max(most, now);
    nlohmann::json made = nlohmann::json::parse(request.body);
    made["metadata"].erase("annotations");
    made["metadata"]["uid"] = "pod-" + std::to_string(++sent);
    return kube::Response{.status = 201, .body = made.dump()};
  });
  cluster.Sync();
  const int64_t before = HeapBytes();
  while (sent < kPods / 10) ASSERT_TRUE(cluster.Pass("vit").ok());
  // An object is there as JSON and as text; its template is parsed, and is part of the job.
  EXPECT_LT(most - before, static_cast<int64_t>(8 * kTemplateBytes)) << sent << " pods sent";
  EXPECT_LT(most - least, static_cast<int64_t>(3 * kTemplateBytes)) << "it does not grow with them";
}

}  // namespace
}  // namespace hetero::reconcile
