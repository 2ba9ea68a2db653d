#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/feed/read_ahead.h"
#include "runtime/source/dataset.h"

namespace hetero::feed {

inline constexpr std::chrono::seconds kPatience(60);

// A storage whose reads wait until so many are underway, or until it is opened for all.
class SlowStorage {
 public:
  explicit SlowStorage(int wanted) : wanted_(wanted) {}

  absl::Status Read(int64_t id, source::RawSample* sample) {
    std::unique_lock lock(mutex_);
    if (sched_getscheduler(0) == SCHED_IDLE) ++idle_reads_;
    ++counts_[id];
    most_ = std::max(most_, ++underway_);
    changed_.notify_all();
    const bool together =
        changed_.wait_for(lock, kPatience, [this] { return open_ || most_ >= wanted_; });
    --underway_;
    if (!together) return absl::DeadlineExceededError("nobody else reads");
    if (id == bad_) return absl::DataLossError("damaged");
    if (id == thrown_) throw std::runtime_error("a library's own words");
    sample->encoding = source::Encoding::kRaw;
    sample->shape = {2, 2, 1};
    sample->bytes.assign(bytes_, static_cast<uint8_t>(id));
    sample->label = static_cast<int32_t>(id % 4);
    return absl::OkStatus();
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // Until so many reads have begun.
  bool WaitForReads(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return Total() >= count; });
  }
  int reads() {
    const std::lock_guard lock(mutex_);
    return Total();
  }
  int reads_of(int64_t id) {
    const std::lock_guard lock(mutex_);
    return counts_[id];
  }

  // By threads of idle priority.
  int idle_reads() {
    const std::lock_guard lock(mutex_);
    return idle_reads_;
  }

  int64_t bad_ = -1;
  int64_t thrown_ = -1;
  size_t bytes_ = 4;

 private:
  int Total() const {
    int total = 0;
    for (const auto& [id, count] : counts_) total += count;
    return total;
  }

  const int wanted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, int> counts_;
  int idle_reads_ = 0;
  int underway_ = 0;
  int most_ = 0;
  bool open_ = false;
};

// Pictures behind a network.
class RemoteDataset : public source::Dataset {
 public:
  explicit RemoteDataset(SlowStorage* storage) : storage_(*storage) {}
  int64_t size() const override { return 64; }
  int32_t classes() const override { return 4; }
  api::ImageShape image() const override { return {2, 2, 1}; }
  absl::Status Read(int64_t id, source::RawSample* sample) const override {
    return storage_.Read(id, sample);
  }
  bool is_remote() const override { return true; }
  std::string Describe(int64_t id) const override { return "sample " + std::to_string(id); }
  std::string fingerprint() const override { return "0123456789abcdef"; }

 private:
  SlowStorage& storage_;
};

using Runs = std::vector<source::Dataset::Run>;

// What the taker of a sample of the training set got: "read", an error's message, "none" where
// nobody has begun to read it.
inline std::string TakeFrom(ReadAhead& ahead, int64_t id, source::RawSample* sample) {
  const std::optional<absl::Status> status = ahead.Take(job::Split::kTrain, id, sample);
  return status ? std::string(status->ok() ? "read" : status->message()) : "none";
}

}  // namespace hetero::feed
