#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/listen_socket.h"

namespace hetero::metrics {

// What one value that changes looks like to those who look at it, as server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html): each viewer first gets the
// event `whole`, then `change` once an interval. All viewers are served by one thread of this
// object, and nobody is waited for: one that does not read is dropped, and finds its way back by
// itself. Thread-safe.
class EventStream {
 public:
  struct Limits {
    size_t viewers = 32;
    size_t behind = 10;  // events that a viewer has not taken yet, beyond which it is dropped
    base::Duration interval = std::chrono::seconds(1);
    base::Duration goodbye = std::chrono::seconds(1);  // for Finish()
  };
  // Both are called on the stream's own thread, and only while somebody looks.
  struct Source {
    // The value as the last `change` left it.
    std::function<std::string()> whole;
    // Takes up what is new; what has changed by that. Empty: nothing, and only a sign of life is
    // sent.
    std::function<std::string()> change;
  };

  EventStream(Source source, Limits limits);
  explicit EventStream(Source source) : EventStream(std::move(source), Limits()) {}
  ~EventStream();  // closes all connections at once
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  const Limits& limits() const;
  // Whether another viewer is one too many. Once it is false, it stays so until Add() is called.
  bool full() const;
  size_t viewers() const;
  // A connection whose request has been read; it gets the head of the answer and then events.
  // Closed at once beyond the limit.
  void Add(base::Socket viewer);
  // The value changes no more: a last change now, which everybody may take within the goodbye, then
  // their connections are closed. Returns after that. Who comes later still gets the whole.
  void Finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hetero::metrics
