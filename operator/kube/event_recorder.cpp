#include "operator/kube/event_recorder.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/backoff.h"
#include "base/log.h"
#include "base/thread.h"
#include "operator/kube/micro_time.h"

namespace hetero::kube {
namespace {

constexpr size_t kNoteBytes = 1024;                              // the API's limit
constexpr size_t kNameBytes = 253;                               // of a DNS subdomain
constexpr size_t kMaxQueued = 1000;                              // client-go's maxQueuedEvents
constexpr size_t kMaxRemembered = 4096;                          // client-go's maxLruCacheEntries
constexpr base::Duration kSeriesEnds = std::chrono::minutes(6);  // client-go's finishTime
constexpr double kBurst = 25;                                    // client-go's defaultSpamBurst ...
constexpr double kRefillSeconds = 300;                           // ... and defaultSpamQPS
constexpr int kTries = 5;
constexpr base::Duration kFlush = std::chrono::seconds(2);
constexpr base::Duration kLogPeriod = std::chrono::minutes(1);

struct Noted {
  ObjectReference regarding;
  EventType type = EventType::kNormal;
  std::string reason;
  std::string action;
  std::string note;
  base::WallTime at;
  base::Instant seen;
};

// Bytes that are no UTF-8 become U+FFFD: notes quote what programs have printed.
std::string ValidUtf8(const std::string& text) {
  const std::string quoted =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(quoted, nullptr, false).get<std::string>();
}

std::string CutNote(std::string note) {
  note = ValidUtf8(note);
  if (note.size() <= kNoteBytes) return note;
  size_t end = kNoteBytes;
  while (end > 0 && (static_cast<unsigned char>(note[end]) & 0xC0) == 0x80) --end;
  note.resize(end);
  return note;
}

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

// Which event is written, and how. Not thread-safe: the writer's.
class Correlator {
 public:
  struct Series {
    nlohmann::json event;
    int64_t count = 1;
    base::Instant last;
  };

  explicit Correlator(EventRecorder::Options options) : options_(std::move(options)) {}

  // The series to be written, whose count is 1 for a new event; null: nothing. Valid until the
  // next call.
  Series* Take(const Noted& noted) {
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
  // It could not be written: an equal event is a new one again.
  void Forget(const Series* series) {
    std::erase_if(series_, [&](const auto& entry) { return &entry.second == series; });
  }
  int64_t limited() const { return limited_; }

 private:
  struct Bucket {
    double tokens = kBurst;
    base::Instant last;
  };

  bool TakeToken(const std::string& object, base::Instant now) {
    Bound(&buckets_);
    Bucket& bucket = buckets_.try_emplace(object, Bucket{.last = now}).first->second;
    bucket.tokens =
        std::min(kBurst, bucket.tokens + base::ToSeconds(now - bucket.last) / kRefillSeconds);
    bucket.last = now;
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }

  nlohmann::json Event(const Noted& noted) {
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

  const EventRecorder::Options options_;
  std::unordered_map<std::string, Series> series_;
  std::unordered_map<std::string, Bucket> buckets_;
  int64_t last_name_ = 0;  // two events never share a name, whatever the clock does
  int64_t limited_ = 0;
};

EventRecorder::Options WithDefaults(EventRecorder::Options options) {
  if (options.instance.empty()) options.instance = options.controller;
  return options;
}

}  // namespace

struct EventRecorder::Impl {
  Impl(Client& client, base::Clock& clock, Options options)
      : client(client), clock(clock), correlator(WithDefaults(std::move(options))) {}

  Client& client;
  base::Clock& clock;

  // Writer only.
  Correlator correlator;
  int64_t failed = 0;
  absl::Status last_error;
  int64_t reported = 0;
  base::Instant report_after;

  std::mutex mutex;  // guards queue, overflown and closing
  std::condition_variable_any changed;
  std::deque<Noted> queue;
  int64_t overflown = 0;
  bool closing = false;

  std::stop_source hurry;  // no more waiting between tries
  std::stop_source done;   // the writer has nothing left
  std::jthread writer;     // its stop: leave the rest and what is under way

  void Run(std::stop_token stop) {
    base::SetThreadName("events");
    while (true) {
      Noted noted;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, stop, [&] { return closing || !queue.empty(); });
        if (stop.stop_requested() || queue.empty()) break;
        noted = std::move(queue.front());
        queue.pop_front();
      }
      Write(noted, stop);
      ReportDropped(false);
    }
    ReportDropped(true);
    done.request_stop();
  }

  void Write(const Noted& noted, std::stop_token stop) {
    Correlator::Series* series = correlator.Take(noted);
    if (series == nullptr) return;
    base::Backoff backoff(
        {.initial = std::chrono::seconds(1), .max = std::chrono::seconds(10), .jitter = 0.25});
    absl::Status status;
    for (int tried = 1;; ++tried) {
      status = WriteOnce(*series, stop);
      if (status.ok()) return;
      const bool may_pass = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
                            absl::IsResourceExhausted(status);
      if (!may_pass || tried == kTries || stop.stop_requested()) break;
      if (!clock.SleepFor(backoff.Next(), hurry.get_token())) break;
    }
    ++failed;
    log::Debug("event not written", {{"regarding", noted.regarding.name},
                                     {"reason", noted.reason},
                                     {"error", status.ToString()}});
    last_error = status;
    // A new event is forgotten, so that an equal one is tried as new. A series keeps its count.
    if (series->count == 1) correlator.Forget(series);
  }

  absl::Status WriteOnce(const Correlator::Series& series, const std::stop_token& stop) {
    const nlohmann::json& event = series.event;
    const auto& name_space = event["metadata"]["namespace"].get_ref<const std::string&>();
    if (series.count > 1) {
      const absl::Status patched =
          client
              .Patch(kEvents, {name_space, event["metadata"]["name"].get_ref<const std::string&>()},
                     PatchType::kMerge, {{"series", event["series"]}}, "", stop)
              .status();
      // Events are thrown away by the server after an hour or so.
      if (!absl::IsNotFound(patched)) return patched;
    }
    const absl::Status created = client.Create(kEvents, name_space, event, stop).status();
    // Only our own earlier try can have had this name.
    return absl::IsAlreadyExists(created) ? absl::OkStatus() : created;
  }

  void ReportDropped(bool last) {
    int64_t dropped = failed + correlator.limited();
    int64_t no_room = 0;
    {
      std::lock_guard lock(mutex);
      no_room = overflown;
      if (last) no_room += static_cast<int64_t>(queue.size());
    }
    dropped += no_room;
    if (dropped == reported || (!last && clock.Now() < report_after)) return;
    reported = dropped;
    report_after = clock.Now() + kLogPeriod;
    log::Warning("events dropped so far", {{"over_the_limit_per_object", correlator.limited()},
                                           {"refused_or_unreachable", failed},
                                           {"queue_full_or_stopping", no_room},
                                           {"last_error", last_error.ToString()}});
  }
};

EventRecorder::EventRecorder(Client& client, base::Clock& clock, Options options)
    : impl_(std::make_unique<Impl>(client, clock, std::move(options))) {
  impl_->writer = std::jthread([impl = impl_.get()](std::stop_token stop) { impl->Run(stop); });
}

EventRecorder::~EventRecorder() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->closing = true;
    impl_->changed.notify_all();
  }
  impl_->hurry.request_stop();
  impl_->clock.SleepFor(kFlush, impl_->done.get_token());
  impl_->writer.request_stop();
  impl_->writer.join();
}

void EventRecorder::Record(const ObjectReference& regarding, EventType type,
                           const std::string& reason, const std::string& action,
                           const std::string& note) {
  Noted noted{.regarding = regarding,
              .type = type,
              .reason = reason,
              .action = action.empty() ? reason : action,
              .note = CutNote(note),
              .at = impl_->clock.WallNow(),
              .seen = impl_->clock.Now()};
  std::lock_guard lock(impl_->mutex);
  if (impl_->closing || impl_->queue.size() >= kMaxQueued) {
    ++impl_->overflown;
    return;
  }
  impl_->queue.push_back(std::move(noted));
  impl_->changed.notify_all();
}

}  // namespace hetero::kube
