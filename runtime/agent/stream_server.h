#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/agent/coordinator.h"
#include "runtime/agent/rank_feed.h"

namespace hetero::agent {

// Gives one rank's batches to the script that trains with them: over a Unix socket, the batches in
// a file of memory that the script maps (batch_arena.h). stream_protocol.h says what is spoken.
// Lives over all scripts of the rank, one after the other; one of them is connected at a time, and
// others are refused by name. Thread-safe.
class StreamServer {
 public:
  struct Options {
    std::string socket_path;  // made with mode 0600; what lies there is replaced
    int32_t local_rank = 0;
    // Somebody else starts the script, once: it may be there still when a next generation begins.
    bool attached = false;
    base::Duration startup_deadline = std::chrono::minutes(10);  // until all ranks agree
    base::Duration held_warning = std::chrono::seconds(30);  // a script holds all it may, and waits
    base::Duration held_deadline = std::chrono::minutes(10);
    base::Duration digest_deadline = std::chrono::seconds(2);
  };
  // How the script of the latest Begin() stands.
  struct Standing {
    bool connected = false;  // now
    bool said_hello = false;
    bool asked = false;       // for its first batch of either kind
    bool was_given = false;   // a batch of either kind
    bool begun = false;       // its position was agreed
    int64_t steps_given = 0;  // steps done, of the whole job, with the last batch that it was given
    bool reached_end = false;  // it was told that the stream has no more batches
    bool stopped = false;      // it was told that the job stops
    bool bye = false;          // it closed the stream as agreed
    absl::Status misuse;       // what it did first that no script may do; it was told so
    absl::Status failure;      // why there are no more batches: the job is lost
  };

  // Listens; nobody is answered before Begin(). `feed`, `coordinator` and `clock` outlive the
  // server. kInvalidArgument for a path that is too long for a socket, else the system's refusal.
  static absl::StatusOr<std::unique_ptr<StreamServer>> Listen(Options options, RankFeed& feed,
                                                              Coordinator& coordinator,
                                                              base::Clock& clock);
  virtual ~StreamServer() = default;

  // A script of this generation may connect; a connection of an earlier one is cut.
  virtual void Begin(int64_t generation, int restart_count) = 0;
  // Ends all waits of the script: whatever it asks for that takes a batch or another rank is
  // answered with `stopped`. Until the next Begin().
  virtual void Interrupt() = 0;
  virtual Standing standing() const = 0;
  virtual const std::string& socket_path() const = 0;
};

}  // namespace hetero::agent
