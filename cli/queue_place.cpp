#include "cli/queue_place.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/json_access.h"
#include "operator/kube/resource.h"

namespace hetero::cli {
namespace {

using base::FieldOf;
using base::ListOf;
using base::TextOf;
using nlohmann::json;

constexpr char kVisibility[] = "visibility.kueue.x-k8s.io";
constexpr const char* kVersions[] = {"v1beta2", "v1beta1"};
constexpr size_t kMostPending = 1000;  // in one answer
constexpr base::Duration kQuiet = std::chrono::seconds(30);

std::string Ordinal(size_t number) {
  const bool teens = number / 10 % 10 == 1;
  const size_t last = teens ? 0 : number % 10;
  return absl::StrCat(number, last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

bool IsOwnedBy(const json& workload, const std::string& uid) {
  for (const json& owner : ListOf(FieldOf(workload, "metadata"), "ownerReferences")) {
    if (TextOf(owner, "uid") == uid) return true;
  }
  return false;
}

}  // namespace

std::string PlaceIn(const json& summary, const JobView& view) {
  size_t waiting = 0;
  size_t place = 0;
  const json& items = ListOf(summary, "items");
  for (const json& workload : items) {
    if (TextOf(FieldOf(workload, "metadata"), "namespace") != view.name_space) continue;
    if (TextOf(workload, "localQueueName") != view.queue) continue;
    ++waiting;
    if (place == 0 && IsOwnedBy(workload, view.uid)) place = waiting;
  }
  if (place == 0) return "";
  return absl::StrCat(Ordinal(place), " of ", waiting, items.size() < kMostPending ? "" : "+",
                      " in ", view.queue);
}

json QueuePlaces::Ask(const std::string& name_space, const std::string& queue,
                      const std::stop_token& stop) {
  size_t unserved = 0;
  for (const char* version : kVersions) {
    const kube::Resource queues{kVisibility, version, "localqueues"};
    const std::string path = kube::ResourcePath(queues, name_space, queue, "pendingworkloads") +
                             kube::Query().Add("limit", std::to_string(kMostPending)).text();
    auto summary = client_.GetPath(path, stop);
    if (summary.ok()) return *std::move(summary);
    if (kube::IsNotServed(summary.status())) {
      ++unserved;  // the other version may be
    } else if (!absl::IsNotFound(summary.status()) && !absl::IsPermissionDenied(summary.status())) {
      quiet_until_ = clock_.Now() + kQuiet;
      return {};
    }
  }
  const base::Instant until = clock_.Now() + kQuiet;
  if (unserved == std::size(kVersions)) {
    quiet_until_ = until;
  } else {
    quiet_queues_[{name_space, queue}] = until;
  }
  return {};
}

void QueuePlaces::Find(std::vector<JobView*> views, std::stop_token stop) {
  std::map<std::pair<std::string, std::string>, json> summaries;
  for (JobView* view : views) {
    if (!view->status.Is(api::ConditionType::kQueued) || view->status.finished()) continue;
    if (view->queue.empty() || clock_.Now() < quiet_until_ || stop.stop_requested()) continue;
    const auto [summary, is_new] = summaries.try_emplace({view->name_space, view->queue});
    const auto quiet = quiet_queues_.find(summary->first);
    if (quiet != quiet_queues_.end() && clock_.Now() < quiet->second) continue;
    if (is_new) summary->second = Ask(view->name_space, view->queue, stop);
    view->place = PlaceIn(summary->second, *view);
  }
}

}  // namespace hetero::cli
