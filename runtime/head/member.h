#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/tls.h"
#include "hetero/v1/membership.pb.h"

namespace hetero::head {

// A worker's side of the Join stream: registers, sends a heartbeat every second, dials again with
// backoff when the stream breaks. Of two heads it obeys the newer: one that comes back after it was
// replaced is left at once, and hears of it. Used by CPU workers, trainers and the input-only
// consumer.
// Thread-safe. Callbacks and the heartbeat source run on the member's own threads, one at a time,
// and must return quickly. The destructor cuts the stream and returns at once.
class Member {
 public:
  struct Options {
    std::string head_address;  // "10.0.0.7:7070" or "unix:/path/head.sock"
    base::TlsOptions tls;
    v1::Hello hello;
    base::Duration heartbeat = std::chrono::seconds(1);
    base::Duration head_timeout = std::chrono::seconds(10);  // out of reach this long: on_head_lost
  };
  struct Callbacks {
    std::function<void(const v1::Welcome&)> on_welcome;        // first contact only
    std::function<void(const v1::Generation&)> on_generation;  // each new number once
    std::function<void(const v1::Roster&)> on_roster;
    std::function<void(const v1::Command&)> on_command;
    // Of a rank with a script. Then `script_words` is there, too.
    std::function<void(const v1::ScriptDecision&)> on_script_decision;
    // All that a head has to know of this rank's script: told on each new stream, with Tell()
    // between.
    std::function<std::vector<v1::ScriptWord>()> script_words;
    // What this CPU worker sees of the data is not what the others see: it gets no tickets.
    std::function<void(const v1::NotAdmitted&)> on_not_admitted;
    // The head will not have this process: a newer incarnation took its place, or it is unknown.
    std::function<void(const v1::Refused&)> on_refused;
    // The head did not answer for `head_timeout`; the caller decides whether to go on.
    std::function<void(const absl::Status&)> on_head_lost;
  };
  // Fills the next heartbeat: counters and progress always, lists with what is new since the last
  // call.
  using HeartbeatSource = std::function<v1::Heartbeat()>;

  static std::unique_ptr<Member> Start(Options options, Callbacks callbacks, HeartbeatSource source,
                                       base::Clock& clock);
  virtual ~Member() = default;

  // Tells the head what this process sees of the data: now, and on every later stream. Until then
  // it takes no part in the job. From any thread.
  virtual void SetReady(const v1::Ready& ready) = 0;

  // A word of this rank's script, now; without a stream it is lost, and `script_words` has it for
  // the next one. From any thread, but never from a callback.
  virtual void Tell(const v1::ScriptWord& word) = 0;

  // A heartbeat now, and not within the second: for what the head is to hear in the order in which
  // it happened. From any thread, but never from a callback.
  virtual void Beat() = 0;

  // Sends the last word, on as many streams as it takes, and waits until the head has acknowledged
  // it. kDeadlineExceeded otherwise; kFailedPrecondition when the head refuses this process. Never
  // from a callback.
  virtual absl::Status Finish(const v1::Finished& finished, base::Duration deadline) = 0;
  // A last word with all lists of this member, not only with what is new in it: for a head that
  // has heard nothing before. Never from a callback.
  virtual v1::Finished Complete(v1::Finished finished) = 0;
};

}  // namespace hetero::head
