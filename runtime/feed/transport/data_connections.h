#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/feed/transport/data_socket.h"
#include "runtime/feed/wire/messages.h"

namespace hetero::feed {

// A worker's end of one data connection. Thread-safe.
class DataConnection {
 public:
  // Queues frames, to be sent in order, and leaves `frames` empty. Their memory is let go of once
  // they are sent. After the end they are dropped.
  void Send(std::deque<grpc::ByteBuffer>* frames);
  // Ends it: what is queued is dropped.
  void Close();

 private:
  friend class DataConnections;
  explicit DataConnection(int fd) : socket_(fd) {}
  absl::Status SendQueued();  // until it ends; kCancelled after Close()

  DataSocket socket_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<grpc::ByteBuffer> frames_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// All data connections of a worker: brings those that trainers open together with the streams on
// which they were offered. A thread for each. Thread-safe.
class DataConnections {
 public:
  explicit DataConnections(base::Clock& clock) : clock_(clock) {}
  ~DataConnections();  // closes all, and calls nobody any more

  struct Callbacks {  // on the connection's thread, with no lock held
    std::function<void(std::shared_ptr<DataConnection>)> on_open;
    std::function<void(const absl::Status&)> on_broken;  // after on_open, unless it was closed here
  };
  // The connection with this id goes to `callbacks`, until Forget().
  void Expect(const DataOffer& offer, Callbacks callbacks);
  void Forget(uint64_t id);

  // Takes over a connection that begins with kDataMagic, none of which was read. One that has not
  // named its offer in time is closed, and the oldest such when there are too many: anybody may
  // dial, and who has nothing to say must not keep out those who have.
  void Accept(int fd);

 private:
  struct Expected {
    std::string key;
    Callbacks callbacks;
  };
  struct Open {
    std::shared_ptr<DataConnection> connection;
    bool known = false;    // it has named an offer, which nobody can guess
    bool evicted = false;  // given up before that
    bool ended = false;
    std::jthread thread;
  };

  // On the connection's own thread.
  void Serve(Open* open);
  // The stream's side of it, once that has come; waits for a while.
  absl::StatusOr<Expected> Greet(Open* open);
  void EvictOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  base::Clock& clock_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::map<uint64_t, Expected> expected_ ABSL_GUARDED_BY(mutex_);
  std::list<Open> open_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hetero::feed
