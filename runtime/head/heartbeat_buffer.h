#pragma once

#include <deque>

#include "hetero/v1/membership.pb.h"

namespace hetero::head {

// The lists of a member's latest heartbeats (losses, evaluations, bad samples, faults). A stream
// that breaks may have lost what was just written to it, so a new stream begins with these; the
// head drops what it knows already. Not thread-safe.
class HeartbeatBuffer {
 public:
  // Keeps the lists of `heartbeat` and of the few before it.
  void Add(const v1::Heartbeat& heartbeat);
  // All lists kept, oldest first; the totals are of `latest`.
  v1::Heartbeat Merge(const v1::Heartbeat& latest) const;

 private:
  static constexpr size_t kKept = 5;
  std::deque<v1::Heartbeat> kept_;
};

}  // namespace hetero::head
