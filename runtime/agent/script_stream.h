#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/agent/batch_arena.h"
#include "runtime/agent/batch_handover.h"
#include "runtime/agent/batch_layout.h"
#include "runtime/agent/coordinator.h"
#include "runtime/agent/held_batches.h"
#include "runtime/agent/rank_feed.h"
#include "runtime/agent/stream_protocol.h"
#include "runtime/agent/stream_server.h"
#include "runtime/feed/batch_stream.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/job/step_plan.h"
#include "runtime/job/stream_digest.h"

namespace hetero::agent {

// One script's stream, from its hello on: answers its questions in order, and holds the batches
// that it has not let go of. Knows nothing of sockets. One thread calls Answer(); the rest may be
// called from any, also meanwhile. What the script holds is let go of with this object.
class ScriptStream {
 public:
  struct Context {
    StreamServer::Options options;
    RankFeed& feed;
    Coordinator& coordinator;
    std::shared_ptr<BatchArena> arena;
    bool arena_alone = false;  // no batch is given in another file
    base::Clock& clock;
    std::string fingerprint;  // StreamFingerprint() of the job
    int restart_count = 0;
    // The latest step of which a script of this rank was told a state; it outlives the stream.
    int64_t* saved_step = nullptr;
  };
  explicit ScriptStream(Context context);

  struct Reply {
    nlohmann::json message;
    std::shared_ptr<const feed::MemoryFile> passes = nullptr;  // goes with it
    bool closes = false;                                       // it is the last one
  };
  // Waits where the question takes that; `stop`: no longer, and says so.
  Reply Answer(const Request& request, const std::stop_token& stop);
  // What to say of a message that ParseRequest() did not take.
  Reply Refuse(const absl::Status& why);

  // The questions without an answer. kFailedPrecondition: the script must not have sent it.
  absl::Status Free(int64_t slot) { return held_.Free(slot); }
  absl::Status Report(const ReportRequest& report);
  // What no script may do, found outside.
  void NoteMisuse(const absl::Status& misuse);

  StreamServer::Standing standing() const;
  // The script may outlive this process, and still look at what it holds: that stays as it is.
  void LeaveHeld() { held_.LeaveAll(); }

 private:
  Reply Handle(const HelloRequest& hello, const std::stop_token& stop);
  Reply Handle(const BeginRequest& begin, const std::stop_token& stop);
  Reply Handle(const NextRequest& next, const std::stop_token& stop);
  Reply Handle(const CheckpointRequest& request, const std::stop_token& stop);
  Reply Handle(const StateRequest& request, const std::stop_token& stop);
  Reply Handle(const ValidationRequest& request, const std::stop_token& stop);
  Reply Handle(const ByeRequest& request, const std::stop_token& stop);
  // Those that Free() and Report() are for.
  Reply Handle(const FreeRequest& request, const std::stop_token& stop);
  Reply Handle(const ReportRequest& request, const std::stop_token& stop);

  Reply NextOfTraining(const std::stop_token& stop);
  Reply NextOfValidation(const std::stop_token& stop);
  // The batch of a step that begins.
  std::optional<Reply> FetchStep(const std::stop_token& stop);
  // Waits until the script may have another slot.
  std::optional<Reply> WaitForSlot(const std::stop_token& stop);
  Reply GivePart(BatchAnswer answer, const BatchPart& part, BatchHandover::Pictures pictures,
                 feed::Batch* batch, const std::string& what);
  // The script asks for something after the last batch of a step.
  void FinishStep();
  Reply Misuse(const std::string& what);
  Reply Stopped();
  Reply Failed(const absl::Status& why);
  const job::StepPlan& plan() const { return context_.feed.schedule().training(); }
  int64_t accumulation() const;

  const Context context_;

  // Of the thread that calls Answer().
  bool greeted_ = false;
  bool one_file_ = false;               // the script's wish
  std::optional<Position> position_;    // once it is agreed
  int64_t step_ = 0;                    // steps done, each with all its parts
  int64_t micro_ = 0;                   // parts of the step at hand that were given
  std::unique_ptr<feed::Batch> batch_;  // of the step at hand
  feed::BatchStream* training_ = nullptr;
  job::StreamDigest own_;                  // of this rank's samples since position_
  std::optional<base::Instant> given_at_;  // the last part of step_, which is not reported yet
  int64_t given_samples_ = 0;
  bool ended_ = false;
  RankFeed::Validation validation_;
  int64_t validated_ = 0;  // batches of the pass at hand
  bool validating_ = false;
  BatchHandover handover_;

  HeldBatches held_;
  mutable base::Mutex mutex_;
  StreamServer::Standing standing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::agent
