#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "runtime/feed/wire/ticket.h"
#include "runtime/job/field_set.h"

namespace hetero::v1 {
class FrameHeader;
}  // namespace hetero::v1

namespace hetero::feed {

// A bad sample and what took its place.
struct BadSample {
  int64_t slot = 0;
  int64_t sample_id = 0;
  int64_t replacement_id = 0;
  std::string reason;  // "train/cat/0004.jpg: premature end of JPEG file"
};

// A sample that ends the process which reads or transforms it: a bad one, wherever it comes up.
struct FatalSample {
  job::Split split = job::Split::kTrain;
  int64_t id = 0;
  std::string reason;  // "train/cat/0004.jpg: ended the process that read it (signal 11, ...)"
  bool operator==(const FatalSample&) const = default;
};

// A file of memory in which slabs lie, and which other processes may map. Immutable but for its
// bytes.
class MemoryFile {
 public:
  virtual ~MemoryFile() = default;
  virtual int fd() const = 0;  // nobody can cut the file shorter
  virtual int64_t size() const = 0;
  virtual const uint8_t* begin() const = 0;  // where this process has it
};

// Whose memory a slab is, where it is not the heap's. Safe from any thread.
class SlabOwner {
 public:
  virtual ~SlabOwner() = default;
  virtual void Release(uint8_t* memory) = 0;
  // The file that the memory is a part of; null: no other process can see it.
  virtual std::shared_ptr<const MemoryFile> file() const { return nullptr; }
  // Names memory for the other side, in `header`'s field for it; the other side gives it back then.
  // False: it cannot be named.
  virtual bool HandOver(uint8_t* /*memory*/, v1::FrameHeader* /*header*/) { return false; }
};

// Gives a slab's memory back.
struct SlabRelease {
  int64_t size = 0;
  std::shared_ptr<SlabOwner> owner;  // null: the heap
  void operator()(uint8_t* memory) const;
};

// Memory of one batch, 64-byte aligned; its bytes are not initialised. Move-only. Large ones are
// kept for the next of the same size, up to 32 MiB in the process.
class Slab {
 public:
  Slab() = default;
  explicit Slab(int64_t bytes);
  Slab(uint8_t* memory, int64_t bytes, std::shared_ptr<SlabOwner> owner)
      : data_(memory, SlabRelease{bytes, std::move(owner)}), size_(bytes) {}
  // Of a batch that was received in shared memory: to be read only.
  uint8_t* data() { return data_.get(); }
  const uint8_t* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  bool shared() const { return data_.get_deleter().owner != nullptr; }
  // See SlabOwner; null for the heap.
  std::shared_ptr<const MemoryFile> file() const;
  // Never gives the memory back, so that nothing is written there any more: another process, which
  // may outlive this one, still looks at it. The slab is empty then.
  void Leave();
  // See SlabOwner. A slab that was handed over is empty.
  bool HandOver(v1::FrameHeader* header);

 private:
  std::unique_ptr<uint8_t[], SlabRelease> data_;
  int64_t size_ = 0;
};

// One field of every sample of a batch.
struct FieldTensor {
  job::FieldSpec spec;
  std::vector<uint8_t> bytes;  // [N, spec.shape], little-endian

  uint8_t* of(int64_t index) { return bytes.data() + index * spec.bytes(); }
  const uint8_t* of(int64_t index) const { return bytes.data() + index * spec.bytes(); }
};

// Where a batch spent its time, each span from the end of the one before; by the trainer's clock.
struct BatchTimes {
  base::WallTime asked;        // its ticket was given to who made it
  base::Duration queued{0};    // until that began
  base::Duration work{0};      // until it was made
  base::Duration transfer{0};  // until it was here
  base::Duration window{0};    // until it was taken
  base::Duration read{0};      // of work: waiting for storage
  base::Instant received{};
  base::Instant taken{};
};

// A produced batch. Entry i is the sample at slot ticket.slots.first + i.
struct Batch {
  Ticket ticket;
  api::ImageShape shape;            // of one picture
  int32_t views = 1;                // pictures of a sample, one behind the other
  Slab images;                      // uint8 [N, views, H, W, C]
  std::vector<int32_t> labels;      // [N]; none where there are `fields`
  std::vector<int64_t> sample_ids;  // [N]; the replacement's id where a sample was bad
  std::vector<uint32_t> crcs;       // [N]; CRC32C of each sample's bytes (SampleCrc)
  // What each sample has beside its picture (job::FieldSet); absent: the class in `labels`.
  std::optional<std::vector<FieldTensor>> fields;
  std::vector<BadSample> bad_samples;
  std::vector<FatalSample> fatal;   // found while this batch was produced
  double work_seconds = 0;          // wall time from first to last sample at the producer
  double cpu_seconds = 0;           // CPU time spent on it
  std::string producer;             // "cpu/0", or "local"
  double queued_seconds = 0;        // that its ticket waited for the producer
  double read_seconds = 0;          // of work_seconds: its threads waited for storage
  std::optional<BatchTimes> times;  // at the trainer, of one of many (batch_lives.h)
  // At a CPU worker: its memory counts until this is gone (ticket_intake.h).
  std::shared_ptr<const void> counted;

  // [H, W, C], or [views, H, W, C].
  std::vector<int32_t> image_shape() const;
  int64_t tensor_bytes() const;  // of the pictures and the fields
  int64_t count() const { return static_cast<int64_t>(fields ? sample_ids.size() : labels.size()); }
};

// Tensors for the samples of `batch`, of zeros.
void AllocateFields(const job::FieldSet& fields, Batch* batch);
// Checksum of entry `index`, for the stream's digest. Of a picture with a class: CRC32C of its
// bytes. Else of all fields in the order of their names, "image" among them: of each its heading
// (job::FieldHeading) and its bytes.
uint32_t SampleCrc(const Batch& batch, int64_t index);

}  // namespace hetero::feed
