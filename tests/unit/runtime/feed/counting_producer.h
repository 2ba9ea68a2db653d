#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "base/crc32c.h"
#include "runtime/feed/batch_producer.h"

namespace hetero::feed {

// A BatchProducer whose samples, `side` x `side` x 3, are a function of (epoch, slot) alone.
// SetOpen() can hold it back.
class CountingProducer : public BatchProducer {
 public:
  static constexpr int64_t kSampleBytes = 12;  // of the smallest ones

  explicit CountingProducer(int32_t side = 2) : side_(side) {}

  absl::Status Check(const Ticket& ticket) const override {
    if (ticket.epoch == kRefusedEpoch) return absl::InvalidArgumentError("refused epoch");
    return absl::OkStatus();
  }
  Batch Allocate(const Ticket& ticket, const SlabSource& slabs) const override {
    const auto count = static_cast<size_t>(ticket.slots.count);
    Batch batch;
    batch.ticket = ticket;
    batch.shape = {side_, side_, 3};
    batch.images = slabs(sample_bytes() * ticket.slots.count);
    batch.labels.resize(count);
    batch.sample_ids.resize(count);
    batch.crcs.resize(count);
    return batch;
  }
  absl::Status Produce(Batch* batch, int64_t index, std::optional<BadSample>* bad) const override {
    {
      std::unique_lock lock(mutex_);
      opened_.wait(lock, [this] { return open_; });
    }
    const int64_t slot = batch->ticket.slots.first + index;
    const auto at = static_cast<size_t>(index);
    uint8_t* out = batch->images.data() + index * sample_bytes();
    std::fill(out, out + sample_bytes(), static_cast<uint8_t>(slot * 7 + batch->ticket.epoch));
    batch->labels[at] = static_cast<int32_t>(slot % 5);
    batch->sample_ids[at] = slot + 1000 * batch->ticket.epoch;
    batch->crcs[at] = base::Crc32c(out, static_cast<size_t>(sample_bytes()));
    if (slot == kBadSlot) *bad = BadSample{slot, -1, batch->sample_ids[at], "bad"};
    ++produced;
    return absl::OkStatus();
  }
  int64_t sample_bytes() const override { return int64_t{side_} * side_ * 3; }

  void SetOpen(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    opened_.notify_all();
  }

  static constexpr int64_t kRefusedEpoch = 99;
  static constexpr int64_t kBadSlot = 3;
  mutable std::atomic<int64_t> produced{0};

 private:
  const int32_t side_;
  mutable std::mutex mutex_;  // guards open_
  mutable std::condition_variable opened_;
  bool open_ = true;
};

}  // namespace hetero::feed
