#include "runtime/train/checkpoint/checkpoint_writer.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/thread.h"

namespace hetero::train {

CheckpointWriter::CheckpointWriter(const CheckpointPlace& place, Options options,
                                   base::Clock& clock)
    : place_(place), options_(std::move(options)), clock_(clock) {
  thread_ = std::jthread([this](std::stop_token stop) {
    base::SetThreadName("checkpoint");
    WriteOrders(stop);
  });
}

CheckpointWriter::~CheckpointWriter() = default;

void CheckpointWriter::WriteOrders(const std::stop_token& stop) {
  base::MutexLock lock(mutex_);
  while (changed_.Wait(mutex_, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return order_.has_value();
  })) {
    const auto order = *std::exchange(order_, std::nullopt);
    lock.Unlock();
    Result result = Write(order.first, order.second);
    lock.Lock();
    result_ = std::move(result);
    changed_.NotifyAll();
  }
}

CheckpointWriter::Result CheckpointWriter::Write(const CheckpointManifest& manifest,
                                                 const Source& source) const {
  const base::Instant begin = clock_.Now();
  Result result{.step = manifest.step};
  try {
    absl::StatusOr<std::string> folder =
        place_.Write(manifest, source(), !options_.prune_run.empty());
    result.status = folder.status();
    if (folder.ok()) {
      result.folder = *std::move(folder);
      const absl::Status pruned = place_.Prune(options_.keep, options_.prune_run, result.folder);
      if (!pruned.ok()) log::Warning("old checkpoints stay", {{"reason", pruned.message()}});
    }
  } catch (const std::exception& error) {  // no memory, or LibTorch's
    result.status = absl::InternalError(error.what());
  }
  result.seconds = base::ToSeconds(clock_.Now() - begin);
  return result;
}

bool CheckpointWriter::busy() const {
  const base::MutexLock lock(mutex_);
  return started_;
}

void CheckpointWriter::Start(CheckpointManifest manifest, Source source) {
  const base::MutexLock lock(mutex_);
  started_ = true;
  order_.emplace(std::move(manifest), std::move(source));
  changed_.NotifyAll();
}

std::optional<CheckpointWriter::Result> CheckpointWriter::Take() {
  const base::MutexLock lock(mutex_);
  if (result_) started_ = false;
  return std::exchange(result_, std::nullopt);
}

std::optional<CheckpointWriter::Result> CheckpointWriter::Wait() {
  const base::MutexLock lock(mutex_);
  changed_.Wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !started_ || result_.has_value();
  });
  if (result_) started_ = false;
  return std::exchange(result_, std::nullopt);
}

}  // namespace hetero::train
