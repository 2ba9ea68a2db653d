#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/feed/transport/shared_region.h"

// How a trainer passes a shared region's file on to a CPU worker of its host: over a unix socket
// beside the feed's own, with a token by which the stream then claims the region. Whoever can reach
// the socket can offer regions; only a stream that was let in can claim one.
namespace hetero::feed {

// The socket beside the feed of `address`; empty when that is no unix socket, or its path is too
// long for a second one.
std::string RegionSocketPath(const std::string& address);

// Never blocks. kUnavailable when nobody listens there.
absl::Status SendRegion(const std::string& path, const TrainerRegion& region);

// The worker's end, with a thread of its own. Thread-safe.
class RegionReceiver {
 public:
  // Null, and a line in the log, when it cannot listen at `path`.
  static std::unique_ptr<RegionReceiver> Start(const std::string& path, base::Clock& clock);
  ~RegionReceiver();

  // The region that came with `token`, once; null as long as there is none.
  std::shared_ptr<WorkerRegion> Take(uint64_t token);

 private:
  RegionReceiver(std::string path, int listener, base::Clock& clock);
  void Run(const std::stop_token& stop);
  // The connection that waits; -1: there is none, or the system has refused it a while ago.
  int Accept(const std::stop_token& stop);
  void Receive(int connection);

  const std::string path_;
  const int listener_;
  base::Clock& clock_;
  bool warned_ = false;  // that connections are refused; on the receiver's thread
  base::Mutex mutex_;
  std::deque<std::pair<uint64_t, std::shared_ptr<WorkerRegion>>> offered_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace hetero::feed
