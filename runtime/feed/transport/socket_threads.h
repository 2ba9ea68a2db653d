#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace hetero::feed {

// Bytes that a connection reads or sends before others of its thread have their turn.
inline constexpr size_t kTurnBytes = 4 << 20;

class SocketThread;

// A connection that SocketThreads looks after.
class ServedSocket {
 public:
  struct Ready {
    bool read = false;  // or closed, or broken
    bool write = false;
    bool gone = false;  // the connection is over in both directions
  };
  // What it goes on with, beside Poke().
  struct Wait {
    bool read = false;
    bool write = false;
    bool again = false;  // soon: it has let others go first
    bool over = false;   // it is not served any more
    base::Instant until = base::Instant::max();
  };
  virtual ~ServedSocket() = default;
  virtual int fd() const = 0;  // constant; does not block
  // Does what can be done without waiting. On one thread at a time; maybe for nothing.
  virtual Wait Serve(Ready ready) = 0;

 private:
  friend class SocketThread;
  friend class SocketThreads;
  std::atomic<SocketThread*> thread_ = nullptr;
  uint64_t seat_ = 0;  // its number at the thread; set before that, once
};

// Looks after any number of connections with few threads: each has one thread, which waits for all
// of its own (epoll). Thread-safe.
class SocketThreads {
 public:
  // Threads start one by one with the first `most` sockets.
  SocketThreads(std::string name, int most, base::Clock& clock);
  // Serves nobody any more when it returns; those it has served must not be poked or removed then.
  ~SocketThreads();
  // For connections that carry batches: as many as there are cores, 2 to 16 of them.
  static int MostForBatches();

  // It is served soon, for the first time. False when the system has no descriptor or thread for
  // it: it is not served then.
  bool Add(std::shared_ptr<ServedSocket> socket);
  // It is served soon, whatever it waits for. Nothing happens to one that is not served.
  static void Poke(const ServedSocket& socket);
  // It is not served any more when this returns; not waited for from within its own Serve().
  static void Remove(const ServedSocket& socket);

 private:
  const std::string name_;
  const size_t most_;
  bool warned_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_seat_ ABSL_GUARDED_BY(mutex_) = 1;
  base::Clock& clock_;
  base::Mutex mutex_;
  std::vector<std::unique_ptr<SocketThread>> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::feed
