#include "runtime/head/heartbeat_buffer.h"

#include <utility>

namespace hetero::head {

void HeartbeatBuffer::Add(const v1::Heartbeat& heartbeat) {
  v1::Heartbeat lists = heartbeat;
  lists.clear_counters();
  lists.clear_progress();
  kept_.push_back(std::move(lists));
  if (kept_.size() > kKept) kept_.pop_front();
}

v1::Heartbeat HeartbeatBuffer::Merge(const v1::Heartbeat& latest) const {
  v1::Heartbeat merged;
  for (const v1::Heartbeat& lists : kept_) merged.MergeFrom(lists);
  merged.MergeFrom(latest);
  return merged;
}

}  // namespace hetero::head
