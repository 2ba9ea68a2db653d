#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/feed/transport/data_socket.h"
#include "runtime/feed/transport/socket_threads.h"
#include "runtime/feed/wire/messages.h"

namespace hetero::feed {

class DataConnections;

// A worker's end of one data connection. Thread-safe.
class DataConnection : public ServedSocket, public std::enable_shared_from_this<DataConnection> {
 public:
  // Queues frames, to be sent in order, and leaves `frames` empty. Their memory is let go of once
  // they are sent. After the end they are dropped.
  void Send(std::deque<grpc::ByteBuffer>* frames);
  // Ends it: what is queued is dropped. Waits for nothing.
  void Close();

  int fd() const override { return socket_.fd(); }
  Wait Serve(Ready ready) override;

 private:
  friend class DataConnections;
  enum class Stage { kGreeting, kOffer, kHandshake, kAnswer, kFrames };

  DataConnection(DataConnections& all, int fd);
  // What this connection waits for; an error ends it.
  absl::StatusOr<Wait> GoOnOrFail(Ready ready);
  absl::StatusOr<Wait> GoOn(Ready ready);
  absl::StatusOr<Wait> ReadGreeting();
  absl::StatusOr<Wait> AwaitOffer(Ready ready);
  absl::StatusOr<Wait> ShakeHands();
  absl::StatusOr<Wait> Greet();
  absl::StatusOr<Wait> Answer();
  absl::StatusOr<Wait> SendFrames(Ready ready);
  // Puts what is queued, or a part of it, into the socket. False: there is nothing.
  absl::StatusOr<bool> TakeQueued();

  DataConnections& all_;
  DataSocket socket_;
  const std::string peer_;  // "10.0.0.7:41234"
  // On the connection's thread.
  Stage stage_ = Stage::kGreeting;
  base::Instant deadline_;  // of all that comes before frames
  std::vector<uint8_t> greeting_;
  uint64_t id_ = 0;
  std::function<void(std::shared_ptr<DataConnection>)> on_open_;  // until it is
  std::function<void(const absl::Status&)> on_broken_;
  std::vector<grpc::Slice> slices_;  // being sent

  base::Mutex mutex_;
  std::deque<grpc::ByteBuffer> frames_ ABSL_GUARDED_BY(mutex_);
  bool resting_ ABSL_GUARDED_BY(mutex_) = false;  // until it is poked: there was nothing to send
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// All data connections of a worker: brings those that trainers open together with the streams on
// which they were offered. Thread-safe.
class DataConnections {
 public:
  // Connections that have not named an offer, at a time: as many as ranks that dial at once. They
  // take no thread and little memory.
  static constexpr size_t kMostUnknown = 1024;
  explicit DataConnections(base::Clock& clock, size_t most_unknown = kMostUnknown);
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
  friend class DataConnection;
  struct Expected {
    std::string key;
    Callbacks callbacks;
  };
  struct Open {
    std::shared_ptr<DataConnection> connection;
    bool known = false;    // it has named an offer, which nobody can guess
    bool evicted = false;  // given up before that
    uint64_t awaits = 0;   // the offer that it has named, and that has not come
  };

  // What was offered under `id`; null: nothing yet, and the connection is poked when it is.
  std::unique_ptr<Expected> Take(uint64_t id, const DataConnection& connection);
  void Ended(const DataConnection& connection);
  void EvictOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  base::Clock& clock_;
  const size_t most_unknown_;
  base::Mutex mutex_;
  std::map<uint64_t, Expected> expected_ ABSL_GUARDED_BY(mutex_);
  std::list<Open> open_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  base::Instant next_warning_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<SocketThreads> threads_;  // which use all above
};

}  // namespace hetero::feed
