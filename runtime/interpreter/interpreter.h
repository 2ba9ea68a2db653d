#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/listen_socket.h"
#include "runtime/interpreter/messages.h"
#include "runtime/pipeline/image.h"

namespace hetero::interpreter {

// One process of Python that calls functions on pictures, and the memory that it shares with this
// one. It ends with this object. One thread uses it.
class Interpreter {
 public:
  // Forked by the process at the other end of `control`. kUnavailable: that has ended; kAborted:
  // there is no new process, for want of something; kDeadlineExceeded: nothing has come of it
  // within `patience`; kCancelled: `stopping` was set. Also in a child of fork().
  static absl::StatusOr<std::unique_ptr<Interpreter>> Fork(int control, base::Duration patience,
                                                           base::Clock& clock,
                                                           const std::atomic<bool>& stopping);
  ~Interpreter();

  enum class Outcome {
    kDone,
    kRaised,
    kRetry,
    kWrongResult,
    kEnded,    // the process, before it answered
    kHung,     // it did not answer in time, and was ended
    kStopped,  // `stopping` was set
  };
  struct Answer {
    Outcome outcome = Outcome::kDone;
    std::string text;  // of what is not done
    base::Duration cpu{};
  };
  // `call` without what Call() fills in itself: the shape of `in`, and where the result lies.
  // Writes the result into `*out`, which has its shape.
  Answer Call(Request call, const pipeline::ImageView& in, pipeline::Image* out,
              base::Duration patience, base::Clock& clock, const std::atomic<bool>& stopping);

  // Bytes of memory that no other process has; 0: not known. Takes a millisecond.
  int64_t PrivateBytes();
  // By how much it has more than when PrivateBytes() was called. Takes microseconds.
  int64_t GrownBytes() const;
  int64_t calls() const { return calls_; }
  int64_t calls(uint32_t function) const {
    return function < calls_of_.size() ? calls_of_[function] : 0;
  }

 private:
  explicit Interpreter(base::Socket socket) : socket_(std::move(socket)) {}
  absl::Status Reserve(size_t bytes);
  int64_t OwnBytes() const;  // resident, and of no file
  // Waits for a message. 0: the other end is closed; -1: errno.
  ssize_t Receive(void* buffer, size_t size, base::Instant deadline, base::Clock& clock,
                  const std::atomic<bool>& stopping);

  base::Socket socket_;
  pid_t pid_ = 0;
  uint8_t* memory_ = nullptr;
  size_t memory_bytes_ = 0;
  int64_t calls_ = 0;
  std::vector<int64_t> calls_of_;  // by function
  int64_t own_before_ = 0;         // OwnBytes() when PrivateBytes() was called
};

}  // namespace hetero::interpreter
