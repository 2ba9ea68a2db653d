#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/agent/coordinator.h"
#include "runtime/feed/batch_producer.h"
#include "runtime/feed/batch_stream.h"
#include "runtime/feed/sample_producer.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/job/schedule.h"

namespace hetero::agent {

// What the stream of one rank draws its batches from and reports to; process::RankSession behind
// SessionFeed (session_feed.h). One thread at a time uses it.
class RankFeed {
 public:
  virtual ~RankFeed() = default;

  virtual const api::HeteroTrainingJob& job() const = 0;
  virtual int32_t rank() const = 0;
  // Training steps only: a script decides itself when it validates.
  virtual const job::Schedule& schedule() const = 0;
  virtual const feed::SampleProducer& producer() const = 0;
  virtual int64_t byte_budget() const = 0;  // of batches waiting in memory
  // Where streams that are opened from now on put their batches; with `moves_shared` also those
  // that lie in memory shared with a CPU worker, which otherwise stay there.
  virtual void UseMemory(feed::SlabSource slabs, bool moves_shared) = 0;

  // The stream that gives the batch of training step `step` next. It lives until the next call.
  virtual feed::BatchStream& TrainingFrom(int64_t step) = 0;
  // Every validation sample once, over all ranks; `batches` of them on each rank.
  struct Validation {
    int64_t batches = 0;
    std::unique_ptr<feed::BatchStream> stream;  // null without a validation set
  };
  virtual Validation OpenValidation() = 0;

  // A script begins here, or begins here again.
  virtual void OnPosition(const Position& position) = 0;
  virtual void OnBatch(const feed::Batch& batch) = 0;  // before it is given out
  // The script has asked for more after the batch of the step that makes `step` steps done.
  virtual void OnStep(int64_t step, int64_t samples, double seconds) = 0;
  // From any thread.
  virtual void OnReported(const std::map<std::string, double>& values, int64_t step) = 0;

  // Requested when the job ends, or this process is not wanted.
  virtual std::stop_token stop_token() const = 0;
};

}  // namespace hetero::agent
