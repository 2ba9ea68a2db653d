#include "operator/kube/event_correlator.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "absl/strings/str_join.h"
#include "operator/kube/micro_time.h"

namespace hetero::kube {
namespace {

constexpr size_t kNameBytes = 253;                               // of a DNS subdomain
constexpr size_t kMaxRemembered = 4096;                          // client-go's maxLruCacheEntries
constexpr base::Duration kSeriesEnds = std::chrono::minutes(6);  // client-go's finishTime
constexpr double kBurst = 25;                                    // client-go's defaultSpamBurst ...
constexpr double kRefillSeconds = 300;                           // ... and defaultSpamQPS

// "<object>.<hex of the time>", as client-go names events.
std::string EventName(const std::string& object, int64_t nanoseconds) {
  char suffix[24];
  const int length =
      std::snprintf(suffix, sizeof suffix, ".%llx", static_cast<unsigned long long>(nanoseconds));
  std::string name = object.substr(0, kNameBytes - length);
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.pop_back();
  return name + suffix;
}

nlohmann::json ToJson(const ObjectReference& object) {
  nlohmann::json json = {
      {"apiVersion", object.api_version}, {"kind", object.kind}, {"name", object.name}};
  if (!object.name_space.empty()) json["namespace"] = object.name_space;
  if (!object.uid.empty()) json["uid"] = object.uid;
  return json;
}

std::string ObjectId(const ObjectReference& object) {
  return absl::StrJoin(
      {object.api_version, object.kind, object.name_space, object.name, object.uid}, "\n");
}

// Forgets the older half of a map that has grown too large.
template <typename Map>
void Bound(Map* map) {
  if (map->size() <= kMaxRemembered) return;
  std::vector<base::Instant> ages;
  ages.reserve(map->size());
  for (const auto& [key, value] : *map) ages.push_back(value.last);
  const auto middle = ages.begin() + static_cast<std::ptrdiff_t>(ages.size() / 2);
  std::nth_element(ages.begin(), middle, ages.end());
  std::erase_if(*map, [limit = *middle](const auto& entry) { return entry.second.last <= limit; });
}

}  // namespace

EventCorrelator::Series* EventCorrelator::Take(const NotedEvent& noted) {
  const std::string object = ObjectId(noted.regarding);
  const std::string key =
      absl::StrJoin({object, std::string(noted.type == EventType::kWarning ? "W" : "N"),
                     noted.reason, noted.action, noted.note},
                    "\n");
  const bool allowed = TakeToken(object, noted.seen);
  auto it = series_.find(key);
  if (it != series_.end() && noted.seen - it->second.last <= kSeriesEnds) {
    Series& series = it->second;
    ++series.count;
    series.last = noted.seen;
    series.event["series"] = {{"count", series.count}, {"lastObservedTime", MicroTime(noted.at)}};
    return allowed ? &series : nullptr;
  }
  if (!allowed) {
    ++limited_;
    return nullptr;
  }
  Bound(&series_);
  it = series_.insert_or_assign(key, Series{.event = Event(noted), .last = noted.seen}).first;
  return &it->second;
}
void EventCorrelator::Forget(const Series* series) {
  std::erase_if(series_, [&](const auto& entry) { return &entry.second == series; });
}

bool EventCorrelator::TakeToken(const std::string& object, base::Instant now) {
  Bound(&buckets_);
  Bucket& bucket =
      buckets_.try_emplace(object, Bucket{.tokens = kBurst, .last = now}).first->second;
  bucket.tokens =
      std::min(kBurst, bucket.tokens + base::ToSeconds(now - bucket.last) / kRefillSeconds);
  bucket.last = now;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

nlohmann::json EventCorrelator::Event(const NotedEvent& noted) {
  const int64_t now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(noted.at.time_since_epoch()).count();
  last_name_ = std::max(now, last_name_ + 1);
  return {{"apiVersion", "events.k8s.io/v1"},
          {"kind", "Event"},
          {"metadata",
           {{"name", EventName(noted.regarding.name, last_name_)},
            {"namespace",
             noted.regarding.name_space.empty() ? "default" : noted.regarding.name_space}}},
          {"eventTime", MicroTime(noted.at)},
          {"type", noted.type == EventType::kWarning ? "Warning" : "Normal"},
          {"reason", noted.reason},
          {"action", noted.action},
          {"note", noted.note},
          {"regarding", ToJson(noted.regarding)},
          {"reportingController", options_.controller},
          {"reportingInstance", options_.instance}};
}

}  // namespace hetero::kube
