#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/train/checkpoint/checkpoint_place.h"

namespace hetero::train {

// Writes checkpoints from a thread of its own, one at a time, and removes old ones. Belongs to one
// thread. The destructor waits for the write under way.
class CheckpointWriter {
 public:
  struct Options {
    int keep = 2;
    // As CheckpointPlace::Prune; where it is set, checkpoints of other runs are left alone.
    std::string prune_run;
  };
  struct Result {
    absl::Status status;
    int64_t step = 0;
    std::string folder;  // where it is, when OK
    double seconds = 0;
  };
  // Makes the bytes; called on the writer's thread.
  using Source = std::function<CheckpointFiles()>;

  // `place` and `clock` outlive this.
  CheckpointWriter(const CheckpointPlace& place, Options options, base::Clock& clock);
  ~CheckpointWriter();

  // A write is under way, or its result has not been taken.
  bool busy() const;
  // Not while busy().
  void Start(CheckpointManifest manifest, Source source);
  // The result of the last Start(), once.
  std::optional<Result> Take();
  // Waits for it.
  std::optional<Result> Wait();

 private:
  void WriteOrders(const std::stop_token& stop);
  Result Write(const CheckpointManifest& manifest, const Source& source) const;

  const CheckpointPlace& place_;
  const Options options_;
  base::Clock& clock_;

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Result> result_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::pair<CheckpointManifest, Source>> order_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace hetero::train
