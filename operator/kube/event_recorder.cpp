#include "operator/kube/event_recorder.h"

#include <chrono>
#include <deque>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "base/backoff.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "operator/kube/event_correlator.h"

namespace hetero::kube {
namespace {

constexpr size_t kNoteBytes = 1024;  // the API's limit
constexpr size_t kMaxQueued = 1000;  // client-go's maxQueuedEvents
constexpr int kTries = 5;
constexpr base::Duration kFlush = std::chrono::seconds(2);
constexpr base::Duration kLogPeriod = std::chrono::minutes(1);

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
  EventCorrelator correlator;
  int64_t failed = 0;
  absl::Status last_error;
  int64_t reported = 0;
  base::Instant report_after;

  base::Mutex mutex;
  base::CondVar changed;  // queue, closing
  std::deque<NotedEvent> queue ABSL_GUARDED_BY(mutex);
  int64_t overflown ABSL_GUARDED_BY(mutex) = 0;
  bool closing ABSL_GUARDED_BY(mutex) = false;

  std::stop_source hurry;  // no more waiting between tries
  std::stop_source done;   // the writer has nothing left
  std::jthread writer;     // its stop: leave the rest and what is under way

  void Run(std::stop_token stop) {
    base::SetThreadName("events");
    while (true) {
      NotedEvent noted;
      {
        const base::MutexLock lock(mutex);
        changed.Wait(mutex, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
          return closing || !queue.empty();
        });
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

  void Write(const NotedEvent& noted, std::stop_token stop) {
    EventCorrelator::Series* series = correlator.Take(noted);
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

  absl::Status WriteOnce(const EventCorrelator::Series& series, const std::stop_token& stop) {
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
      const base::MutexLock lock(mutex);
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
    const base::MutexLock lock(impl_->mutex);
    impl_->closing = true;
    impl_->changed.NotifyAll();
  }
  impl_->hurry.request_stop();
  impl_->clock.SleepFor(kFlush, impl_->done.get_token());
  impl_->writer.request_stop();
  impl_->writer.join();
}

void EventRecorder::Record(const ObjectReference& regarding, EventType type,
                           const std::string& reason, const std::string& action,
                           const std::string& note) {
  NotedEvent noted{.regarding = regarding,
                   .type = type,
                   .reason = reason,
                   .action = action.empty() ? reason : action,
                   .note = CutNote(note),
                   .at = impl_->clock.WallNow(),
                   .seen = impl_->clock.Now()};
  const base::MutexLock lock(impl_->mutex);
  if (impl_->closing || impl_->queue.size() >= kMaxQueued) {
    ++impl_->overflown;
    return;
  }
  impl_->queue.push_back(std::move(noted));
  impl_->changed.NotifyAll();
}

}  // namespace hetero::kube
