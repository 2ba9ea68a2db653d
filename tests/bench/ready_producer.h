#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "base/crc32c.h"
#include "runtime/feed/batch_producer.h"

namespace hetero::bench {

// Pictures of one colour, written once where the memory is used again.
class ReadyProducer : public feed::BatchProducer {
 public:
  explicit ReadyProducer(api::ImageShape shape)
      : shape_(shape), bytes_(int64_t{shape.height} * shape.width * shape.channels) {
    std::vector<uint8_t> sample(static_cast<size_t>(bytes_), kFill);
    crc_ = base::Crc32c(sample.data(), sample.size());
  }
  absl::Status Check(const feed::Ticket&) const override { return absl::OkStatus(); }
  feed::Batch Allocate(const feed::Ticket& ticket, const feed::SlabSource& slabs) const override {
    const auto count = static_cast<size_t>(ticket.slots.count);
    feed::Batch batch;
    batch.ticket = ticket;
    batch.shape = shape_;
    batch.images = slabs(bytes_ * ticket.slots.count);
    batch.labels.resize(count);
    batch.sample_ids.resize(count);
    batch.crcs.resize(count, crc_);
    Fill(batch.images.data(), batch.images.size());
    return batch;
  }
  absl::Status Produce(feed::Batch*, int64_t, std::optional<feed::BadSample>*) const override {
    return absl::OkStatus();
  }
  int64_t sample_bytes() const override { return bytes_; }

 private:
  static constexpr uint8_t kFill = 0x5A;
  static constexpr int64_t kLarge = 1 << 20, kPage = 4096;

  // Large batches lie where one has lain before, and the plain sockets do not write theirs again
  // either. Checksums find out whether they are still what they were.
  static void Fill(uint8_t* memory, int64_t size) {
    bool filled = size >= kLarge;
    for (int64_t i = 0; filled && i < size; i += kPage) filled = memory[i] == kFill;
    if (!filled) std::memset(memory, kFill, static_cast<size_t>(size));
  }

  api::ImageShape shape_;
  int64_t bytes_;
  uint32_t crc_;
};

}  // namespace hetero::bench
