#include "runtime/feed/wire/frame_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "hetero/v1/feed.pb.h"
#include "runtime/feed/wire/field_messages.h"
#include "runtime/feed/wire/ticket_messages.h"

namespace hetero::feed {
namespace {

constexpr uint32_t kMaxHeaderBytes = 64u << 20;
constexpr size_t kImageBytes = 256 << 10;  // of a piece, whose checksum is made while it is cached
constexpr size_t kPieceBytes = 1 << 20;    // memory is touched as bytes come, not as announced

uint32_t GetLittleEndian(const uint8_t* in) {
  return uint32_t{in[0]} | uint32_t{in[1]} << 8 | uint32_t{in[2]} << 16 | uint32_t{in[3]} << 24;
}

int32_t ViewsOf(const v1::FrameHeader& header) { return header.views() == 0 ? 1 : header.views(); }

// Bytes of the tensor that `header` announces, no more than `left`.
absl::StatusOr<int64_t> TensorBytes(const v1::FrameHeader& header, size_t left) {
  const int64_t count = header.ticket().count();
  const auto bad = [&](auto... what) {
    return absl::DataLossError(
        absl::StrCat("batch frame of ticket ", header.ticket().id(), what...));
  };
  const int64_t labels = header.has_fields() ? 0 : count;
  if (count < 0 || header.labels_size() != labels || header.sample_ids_size() != count ||
      header.sample_crc32c_size() != count) {
    return bad(": ", count, " samples, but ", header.labels_size(), " labels, ",
               header.sample_ids_size(), " ids, ", header.sample_crc32c_size(), " checksums");
  }
  if (header.bad_samples_size() > count || header.fatal_size() > count) {
    return bad(": ", count, " samples, but ", header.bad_samples_size(), " bad ones and ",
               header.fatal_size(), " fatal ones");
  }
  int64_t bytes = 1;
  for (const int64_t factor : {int64_t{header.height()}, int64_t{header.width()},
                               int64_t{header.channels()}, int64_t{ViewsOf(header)}}) {
    if (factor <= 0 || bytes > kMaxTensorBytes / factor) {
      return bad(": impossible sample shape ", header.height(), "x", header.width(), "x",
                 header.channels(), ", ", ViewsOf(header), " views");
    }
    bytes *= factor;
  }
  if (count > kMaxTensorBytes / bytes || static_cast<uint64_t>(bytes * count) > left) {
    return bad(": ", count, " samples of ", bytes, " bytes announced, ", left, " bytes sent");
  }
  return bytes * count;
}

}  // namespace

struct FrameReader::Open {
  v1::FrameHeader header;
  bool has_ticket = false;
  Frame frame;
  std::unique_ptr<Batch> batch;  // null: there is none in it
  Slab wanted;                   // NamedMemory's
  int64_t tensor = 0;            // bytes of the pictures
  int64_t images = 0;            // of them: given a place
  std::vector<job::FieldSpec> specs;
  size_t field = 0;  // the one that is being read
  uint32_t crc = 0;  // of what is there
};

FrameReader::FrameReader(OpenMemory open_memory) : open_memory_(std::move(open_memory)) { Await(); }

FrameReader::~FrameReader() = default;

absl::Status FrameReader::FailForMemory(const std::function<void(Frame)>& on_frame) const {
  if (open_ == nullptr || !open_->has_ticket) {
    return absl::ResourceExhaustedError("no memory in the trainer for a frame");
  }
  const Ticket& ticket = open_->frame.ticket;
  const std::string error =
      absl::StrCat("no memory in the trainer for the batch of ticket ", ticket.id);
  // Told as nobody's lack of memory: that is what CPU workers are counted for.
  on_frame({.kind = Frame::Kind::kFailed, .ticket = ticket, .error = absl::InternalError(error)});
  return absl::ResourceExhaustedError(error);
}

void FrameReader::Await() {
  part_ = Part::kPrefix;
  room_ = {prefix_.data(), prefix_.size()};
  open_.reset();
  if (header_.capacity() > kPieceBytes) std::string().swap(header_);
}

absl::StatusOr<std::optional<Frame>> FrameReader::Take(size_t size, size_t left) {
  if (part_ == Part::kImages || part_ == Part::kFields) {
    open_->crc = base::Crc32c(room_.to, size, open_->crc);
  }
  room_.to += size;
  room_.size -= size;
  while (room_.size == 0) {
    HETERO_ASSIGN_OR_RETURN(const bool whole, TakePart(left));
    if (whole) return Finish();
  }
  return std::nullopt;
}

absl::StatusOr<bool> FrameReader::TakePart(size_t left) {
  switch (part_) {
    case Part::kPrefix:
      HETERO_RETURN_IF_ERROR(BeginHeader(left));
      return false;
    case Part::kHeader:
      if (NextOfHeader()) return false;
      return BeginFrame(left);
    case Part::kImages:
      if (NextOfImages()) return false;
      if (open_->header.has_fields()) {
        HETERO_ASSIGN_OR_RETURN(open_->specs, AnnouncedFields(open_->header, left));
        open_->batch->fields.emplace();
      }
      part_ = Part::kFields;
      [[fallthrough]];
    case Part::kFields:
      return !NextOfFields();
  }
  __builtin_unreachable();
}

absl::Status FrameReader::BeginHeader(size_t left) {
  const uint32_t size = GetLittleEndian(prefix_.data());
  if (size > kMaxHeaderBytes || size > left) {
    return absl::DataLossError(
        absl::StrCat("a feed frame announces a header of ", size, " bytes, ", left, " were sent"));
  }
  header_.clear();
  header_left_ = size;
  part_ = Part::kHeader;
  NextOfHeader();
  return absl::OkStatus();
}

bool FrameReader::NextOfHeader() {
  const size_t at = header_.size(), part = std::min(header_left_, kPieceBytes);
  if (part == 0) return false;
  header_.resize(at + part);
  header_left_ -= part;
  room_ = {reinterpret_cast<uint8_t*>(header_.data()) + at, part};
  return true;
}

absl::StatusOr<bool> FrameReader::BeginFrame(size_t left) {
  if (base::Crc32c(header_.data(), header_.size()) != GetLittleEndian(prefix_.data() + 4)) {
    return absl::DataLossError("a feed frame's header was damaged on its way (CRC32C)");
  }
  open_ = std::make_unique<Open>();
  v1::FrameHeader& header = open_->header;
  if (!header.ParseFromString(header_)) {
    return absl::DataLossError("a feed frame's header is not a FrameHeader: versions differ?");
  }
  Frame& frame = open_->frame;
  HETERO_ASSIGN_OR_RETURN(frame.ticket, FromProto(header.ticket()));
  open_->has_ticket = true;
  if (header.kind() == v1::FrameHeader::STARTED) return true;
  if (header.kind() == v1::FrameHeader::FAILED) {
    frame.kind = Frame::Kind::kFailed;
    const std::string error = base::ToUtf8(header.error(), kMaxErrorText);
    frame.error = absl::Status(static_cast<absl::StatusCode>(header.error_code()), error);
    if (frame.error.ok()) frame.error = absl::UnknownError(error);
    return true;
  }
  if (header.kind() != v1::FrameHeader::BATCH) {
    return absl::DataLossError(
        absl::StrCat("unknown kind ", static_cast<int>(header.kind()), " of feed frame"));
  }
  frame.kind = Frame::Kind::kBatch;
  part_ = Part::kImages;
  HETERO_RETURN_IF_ERROR(BeginBatch(left));
  return false;
}

absl::Status FrameReader::BeginBatch(size_t left) {
  const v1::FrameHeader& header = open_->header;
  const bool named = header.memory_case() != v1::FrameHeader::MEMORY_NOT_SET;
  HETERO_ASSIGN_OR_RETURN(const int64_t bytes,
                          TensorBytes(header, named ? std::numeric_limits<size_t>::max() : left));
  open_->batch = std::make_unique<Batch>();
  Batch& batch = *open_->batch;
  batch.ticket = open_->frame.ticket;
  batch.shape = {header.height(), header.width(), header.channels()};
  batch.views = ViewsOf(header);
  HETERO_ASSIGN_OR_RETURN(NamedMemory memory, open_memory_(header, bytes));
  open_->tensor = bytes;
  batch.images = std::move(memory.slab);
  open_->wanted = std::move(memory.wanted);
  open_->frame.transport = memory.transport;
  batch.labels.assign(header.labels().begin(), header.labels().end());
  batch.sample_ids.assign(header.sample_ids().begin(), header.sample_ids().end());
  batch.crcs.assign(header.sample_crc32c().begin(), header.sample_crc32c().end());
  for (const v1::BadSample& bad : header.bad_samples()) {
    batch.bad_samples.push_back({bad.slot(), bad.sample_id(), bad.replacement_id(),
                                 base::ToUtf8(bad.reason(), kMaxErrorText)});
  }
  for (const v1::FatalSample& fatal : header.fatal()) batch.fatal.push_back(FromProto(fatal));
  batch.work_seconds = header.work_seconds();
  batch.cpu_seconds = header.cpu_seconds();
  batch.read_seconds = header.read_seconds();
  batch.queued_seconds = header.queued_seconds();
  if (!named) return absl::OkStatus();
  // All of them are there already.
  open_->images = bytes;
  uint8_t* wanted = open_->wanted.data();
  for (int64_t at = 0; at < bytes;) {
    const auto part = std::min(static_cast<size_t>(bytes - at), kImageBytes);
    open_->crc = base::Crc32c(batch.images.data() + at, part, open_->crc);
    if (wanted != nullptr) std::memcpy(wanted + at, batch.images.data() + at, part);
    at += static_cast<int64_t>(part);
  }
  return absl::OkStatus();
}

bool FrameReader::NextOfImages() {
  Slab& images = open_->batch->images;
  const auto left = static_cast<size_t>(open_->tensor - open_->images);
  if (left == 0) return false;
  room_ = {images.data() + open_->images, std::min(left, kImageBytes)};
  open_->images += static_cast<int64_t>(room_.size);
  return true;
}

bool FrameReader::NextOfFields() {
  for (; open_->field < open_->specs.size(); ++open_->field) {
    const job::FieldSpec& spec = open_->specs[open_->field];
    std::vector<FieldTensor>& fields = *open_->batch->fields;
    if (fields.size() == open_->field) fields.push_back({spec, {}});
    std::vector<uint8_t>& bytes = fields.back().bytes;
    const auto size = static_cast<size_t>(spec.bytes() * open_->header.ticket().count());
    const size_t at = bytes.size(), part = std::min(size - at, kPieceBytes);
    if (part == 0) continue;
    if (at == 0) bytes.reserve(size);  // or growing would copy what has come, and need it twice
    bytes.resize(at + part);
    room_ = {bytes.data() + at, part};
    return true;
  }
  return false;
}

absl::StatusOr<std::optional<Frame>> FrameReader::Finish() {
  const std::unique_ptr<Open> open = std::move(open_);
  Await();
  Frame frame = std::move(open->frame);
  if (frame.kind != Frame::Kind::kBatch) return frame;
  const uint32_t sent = open->header.batch_crc32c();
  if (open->crc != sent) {
    frame.kind = Frame::Kind::kFailed;
    frame.damaged = true;
    frame.error = absl::DataLossError(
        absl::StrCat("the batch of ticket ", frame.ticket.id, " was damaged on its way: CRC32C ",
                     absl::Hex(open->crc), ", sent as ", absl::Hex(sent)));
    return frame;
  }
  if (open->wanted.data() != nullptr) open->batch->images = std::move(open->wanted);
  frame.batch = std::move(open->batch);
  return frame;
}

}  // namespace hetero::feed
