#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/feed/transport/data_socket.h"
#include "runtime/feed/transport/socket_threads.h"
#include "runtime/feed/wire/messages.h"

namespace hetero::feed {

// A trainer's end of one data connection: dials, and reads frames until it breaks or is destroyed.
class DataReceiver {
 public:
  struct Callbacks {                  // on the connection's thread, with no lock held
    std::function<void()> on_answer;  // the worker has it: its frames come here from now on
    std::function<void(Frame)> on_frame;
    // Last: why it ended. Unless the worker may have taken it up, all its frames come over the
    // stream: nobody could be dialled, or the other side closed it before it had answered.
    std::function<void(const absl::Status&, bool taken)> on_end;
    OpenMemory open_memory = NoMemory;
    size_t most_bytes = std::numeric_limits<size_t>::max();  // of a frame
  };
  // `peer` as gRPC writes it: "ipv4:10.0.0.7:7080", "ipv6:%5B::1%5D:7080". kInvalidArgument for any
  // other, kUnavailable when the system has no socket to give. `threads` outlive it.
  static absl::StatusOr<std::unique_ptr<DataReceiver>> Start(const std::string& peer,
                                                             DataOffer offer, Callbacks callbacks,
                                                             SocketThreads& threads);
  // Nothing is called any more when it returns. Not from a callback.
  ~DataReceiver();

 private:
  class Connection;
  explicit DataReceiver(std::shared_ptr<Connection> connection);

  const std::shared_ptr<Connection> connection_;
};

}  // namespace hetero::feed
