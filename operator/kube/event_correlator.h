#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "operator/kube/event_recorder.h"

// For event_recorder.cpp only.
namespace hetero::kube {

// What was asked to be recorded, and when.
struct NotedEvent {
  ObjectReference regarding;
  EventType type = EventType::kNormal;
  std::string reason;
  std::string action;
  std::string note;
  base::WallTime at;
  base::Instant seen;
};

// Which events are written, and how, as client-go's correlator decides: equal ones within six
// minutes are one series with a count, and an object has 25 at once and one per five minutes after
// that. Not thread-safe.
class EventCorrelator {
 public:
  struct Series {
    nlohmann::json event;
    int64_t count = 1;
    base::Instant last;
  };

  explicit EventCorrelator(EventRecorder::Options options) : options_(std::move(options)) {}

  // The series to be written, whose count is 1 for a new event; null: nothing. Valid until the
  // next call.
  Series* Take(const NotedEvent& noted);
  // It could not be written: an equal event is a new one again.
  void Forget(const Series* series);
  // Events left out because their object had too many.
  int64_t limited() const { return limited_; }

 private:
  struct Bucket {
    double tokens;
    base::Instant last;
  };

  bool TakeToken(const std::string& object, base::Instant now);
  nlohmann::json Event(const NotedEvent& noted);

  const EventRecorder::Options options_;
  std::unordered_map<std::string, Series> series_;
  std::unordered_map<std::string, Bucket> buckets_;
  int64_t last_name_ = 0;  // two events never share a name, whatever the clock does
  int64_t limited_ = 0;
};

}  // namespace hetero::kube
