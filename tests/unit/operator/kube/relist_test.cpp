// An API server that has restarted: every kind is listed anew, all at the same time.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "fake_transport.h"
#include "instant_clock.h"
#include "operator/kube/watcher.h"

namespace hetero::kube {
namespace {

constexpr int kObjects = 500;                           // of each kind
constexpr int64_t kOperatorLimit = int64_t{256} << 20;  // resources.limits.memory of the chart

int64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();  // a sanitizer's allocator reports nothing
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

// About 20 kB of small fields, as pods and jobs with their templates have them.
const std::string& ObjectText() {
  static const std::string text = [] {
    nlohmann::json object = {
        {"metadata", {{"namespace", "n"}, {"name", "a"}, {"resourceVersion", "3"}}}};
    for (int i = 0; i < 400; ++i) {
      object["spec"]["env"].push_back(
          {{"name", "VARIABLE_" + std::to_string(i)}, {"value", std::to_string(i)}});
    }
    return object.dump();
  }();
  return text;
}

int NumberIn(const std::string& path, const std::string& field) {
  const size_t at = path.find(field);
  return at == std::string::npos ? 0 : std::atoi(path.c_str() + at + field.size());
}

// The continue token is the number of objects before it.
Response PageOf(const std::string& path) {
  const int from = NumberIn(path, "continue="), limit = NumberIn(path, "limit=");
  const int to = std::min(from + limit, kObjects);
  std::string body = R"({"metadata": {"resourceVersion": "7", "continue": ")" +
                     (to < kObjects ? std::to_string(to) : "") + R"("}, "items": [)";
  for (int i = from; i < to; ++i) body += (i == from ? "" : ",") + ObjectText();
  return {.status = 200, .headers = {{"content-type", "application/json"}}, .body = body + "]}"};
}

// Lets a number of threads through when all are there.
class Meeting {
 public:
  explicit Meeting(int members) : members_(members) {}
  // False: somebody did not come.
  bool Wait() {
    std::unique_lock lock(mutex_);
    const int round = round_;
    if (++waiting_ == members_) {
      waiting_ = 0;
      ++round_;
      changed_.notify_all();
      return true;
    }
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return round_ != round; });
  }

 private:
  const int members_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  int waiting_ = 0, round_ = 0;
};

// One kind, listed by a watcher; `whole_page` is called when a page is there and none of its
// objects was let go.
void ListAll(const Resource& kind, const std::function<void()>& whole_page) {
  InstantClock clock;
  metrics::Registry registry;
  FakeTransport transport;
  Client client(transport, clock, registry, {.qps = 0});
  std::stop_source stop;
  bool new_page = false;
  int objects = 0;
  transport.Always([&](const Request& request, std::stop_token) {
    new_page = true;
    return PageOf(request.path);
  });
  Watcher watcher(client, clock, registry, {.resource = kind},
                  {.list_begins = [] {},
                   .apply =
                       [&](const nlohmann::json&) {
                         ++objects;
                         if (std::exchange(new_page, false)) whole_page();
                       },
                   .remove = [](const nlohmann::json&) {},
                   .list_ends = [&] { stop.request_stop(); }},
                  [] { return 0.0; });
  watcher.Run(stop.get_token());
  EXPECT_EQ(objects, kObjects);
}

// A page as JSON takes many times its bytes.
TEST(Relist, OfSeveralKindsAtOnceFitsTheOperator) {
  const std::array kinds = {kPods, kServices, kConfigMaps, kSecrets, kNetworkPolicies};
  Meeting all_have_a_page(kinds.size()), measured(kinds.size());
  std::mutex mutex;  // guards `most`
  int64_t most = 0;
  ObjectText();
  const int64_t before = HeapBytes();
  {
    std::vector<std::jthread> threads;
    for (const Resource& kind : kinds) {
      threads.emplace_back([&] {
        ListAll(kind, [&] {
          EXPECT_TRUE(all_have_a_page.Wait());
          {
            const std::lock_guard lock(mutex);
            most = std::max(most, HeapBytes());
          }
          EXPECT_TRUE(measured.Wait());
        });
      });
    }
  }
  EXPECT_LT(most - before, kOperatorLimit / 8);
}

}  // namespace
}  // namespace hetero::kube
