#include "runtime/feed/wire/messages.h"

#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "hetero/v1/feed.pb.h"
#include "runtime/feed/wire/field_messages.h"
#include "runtime/feed/wire/frame_reader.h"
#include "runtime/feed/wire/slice_reader.h"
#include "runtime/feed/wire/ticket_messages.h"

namespace hetero::feed {
namespace {

constexpr size_t kPrefixBytes = 8;  // header length and header checksum

void PutLittleEndian(uint32_t value, char* out) {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<char>(value >> (8 * i));
}

grpc::Slice HeaderSlice(const v1::FrameHeader& header) {
  std::string bytes(kPrefixBytes, '\0');
  header.AppendToString(&bytes);
  const size_t size = bytes.size() - kPrefixBytes;
  PutLittleEndian(static_cast<uint32_t>(size), bytes.data());
  PutLittleEndian(base::Crc32c(bytes.data() + kPrefixBytes, size), bytes.data() + 4);
  return grpc::Slice(bytes);
}

uint32_t BatchCrc(const Batch& batch) {
  if (batch.fields) {
    uint32_t crc = base::Crc32c(batch.images.data(), static_cast<size_t>(batch.images.size()));
    for (const FieldTensor& field : *batch.fields) {
      crc = base::Crc32c(field.bytes.data(), field.bytes.size(), crc);
    }
    return crc;
  }
  const uint64_t sample_bytes =
      batch.count() == 0 ? 0 : static_cast<uint64_t>(batch.images.size() / batch.count());
  uint32_t crc = 0;
  for (const uint32_t sample : batch.crcs) crc = base::Crc32cCombine(crc, sample, sample_bytes);
  return crc;
}

v1::FrameHeader BatchHeader(const Batch& batch) {
  v1::FrameHeader header;
  header.set_kind(v1::FrameHeader::BATCH);
  ToProto(batch.ticket, header.mutable_ticket());
  header.set_height(batch.shape.height);
  header.set_width(batch.shape.width);
  header.set_channels(batch.shape.channels);
  if (batch.views > 1) header.set_views(batch.views);
  header.mutable_labels()->Assign(batch.labels.begin(), batch.labels.end());
  header.mutable_sample_ids()->Assign(batch.sample_ids.begin(), batch.sample_ids.end());
  header.mutable_sample_crc32c()->Assign(batch.crcs.begin(), batch.crcs.end());
  for (const BadSample& bad : batch.bad_samples) {
    v1::BadSample* out = header.add_bad_samples();
    out->set_slot(bad.slot);
    out->set_sample_id(bad.sample_id);
    out->set_replacement_id(bad.replacement_id);
    out->set_reason(base::ToUtf8(bad.reason, kMaxErrorText));
  }
  for (const FatalSample& fatal : batch.fatal) ToProto(fatal, header.add_fatal());
  if (batch.fields) ToProto(*batch.fields, header.mutable_fields());
  header.set_batch_crc32c(BatchCrc(batch));
  header.set_work_seconds(batch.work_seconds);
  header.set_cpu_seconds(batch.cpu_seconds);
  header.set_read_seconds(batch.read_seconds);
  header.set_queued_seconds(batch.queued_seconds);
  return header;
}

// Bytes of `batch`, which lives as long as any such slice of it: its memory counts until it is gone
// (Batch::counted). gRPC lets go of each slice on its own.
grpc::Slice Borrowed(const std::shared_ptr<Batch>& batch, uint8_t* bytes, size_t size) {
  const auto release = [](void* owner) { delete static_cast<std::shared_ptr<Batch>*>(owner); };
  return grpc::Slice(bytes, size, release, new std::shared_ptr<Batch>(batch));
}

absl::StatusOr<Frame> ReadWith(FrameReader* reader, ByteSource* source) {
  if (source->left() < reader->room().size) {
    return absl::DataLossError("a feed frame ends inside its prefix");
  }
  while (true) {
    const FrameReader::Room room = reader->room();
    HETERO_RETURN_IF_ERROR(source->Read(room.to, room.size));
    HETERO_ASSIGN_OR_RETURN(std::optional<Frame> frame, reader->Take(room.size, source->left()));
    if (frame) return *std::move(frame);
  }
}

}  // namespace

absl::StatusOr<NamedMemory> NoMemory(const v1::FrameHeader& header, int64_t bytes) {
  if (header.memory_case() == v1::FrameHeader::MEMORY_NOT_SET) return NamedMemory{Slab(bytes), ""};
  return absl::DataLossError(absl::StrCat("batch frame of ticket ", header.ticket().id(),
                                          ": in memory that this stream does not have"));
}

absl::StatusOr<Frame> ReadFrame(const OpenMemory& open_memory, ByteSource* source) {
  FrameReader reader(open_memory);
  return ReadWith(&reader, source);
}

grpc::ByteBuffer EncodeRequest(const TicketRequest& request, const v1::TicketRequest* offers) {
  v1::TicketRequest proto;
  if (offers != nullptr) proto = *offers;
  for (const Ticket& ticket : request.issue) ToProto(ticket, proto.add_issue());
  proto.mutable_cancel()->Assign(request.cancel.begin(), request.cancel.end());
  for (const FatalSample& fatal : request.fatal) ToProto(fatal, proto.add_fatal());
  const grpc::Slice slice(proto.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

absl::StatusOr<TicketRequest> DecodeRequest(const grpc::ByteBuffer& buffer,
                                            v1::TicketRequest* offers) {
  absl::StatusOr<SliceReader> reader = SliceReader::Open(buffer);
  if (!reader.ok()) return reader.status();
  std::string bytes(reader->left(), '\0');
  HETERO_RETURN_IF_ERROR(reader->Read(bytes.data(), bytes.size()));
  if (!offers->ParseFromString(bytes)) {
    return absl::InvalidArgumentError("the trainer's message is not a TicketRequest");
  }
  TicketRequest request;
  for (const v1::Ticket& ticket : offers->issue()) {
    absl::StatusOr<Ticket> issued = FromProto(ticket);
    if (!issued.ok()) return issued.status();
    request.issue.push_back(*issued);
  }
  request.cancel.assign(offers->cancel().begin(), offers->cancel().end());
  for (const v1::FatalSample& fatal : offers->fatal()) request.fatal.push_back(FromProto(fatal));
  return request;
}

grpc::ByteBuffer EncodeStarted(const Ticket& ticket) {
  v1::FrameHeader header;
  header.set_kind(v1::FrameHeader::STARTED);
  ToProto(ticket, header.mutable_ticket());
  const grpc::Slice slice = HeaderSlice(header);
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer EncodeFailed(const Ticket& ticket, const absl::Status& error) {
  v1::FrameHeader header;
  header.set_kind(v1::FrameHeader::FAILED);
  ToProto(ticket, header.mutable_ticket());
  const absl::string_view text = error.message();
  header.set_error(base::ToUtf8({text.data(), text.size()}, kMaxErrorText));
  header.set_error_code(static_cast<int32_t>(error.code()));
  const grpc::Slice slice = HeaderSlice(header);
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer EncodeBatch(std::unique_ptr<Batch> batch) {
  const std::shared_ptr<Batch> sent = std::move(batch);
  v1::FrameHeader header = BatchHeader(*sent);
  sent->images.HandOver(&header);
  std::vector<grpc::Slice> slices = {HeaderSlice(header)};
  if (sent->images.size() > 0) {
    slices.push_back(Borrowed(sent, sent->images.data(), static_cast<size_t>(sent->images.size())));
  }
  if (sent->fields) {
    for (FieldTensor& field : *sent->fields) {
      if (field.bytes.empty()) continue;
      slices.push_back(Borrowed(sent, field.bytes.data(), field.bytes.size()));
    }
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

grpc::ByteBuffer JoinFrames(const std::vector<grpc::ByteBuffer>& frames) {
  std::vector<grpc::Slice> all, slices;
  for (const grpc::ByteBuffer& frame : frames) {
    if (frame.Dump(&slices).ok()) std::move(slices.begin(), slices.end(), std::back_inserter(all));
  }
  return grpc::ByteBuffer(all.data(), all.size());
}

absl::Status DecodeFrames(const grpc::ByteBuffer& buffer, const OpenMemory& open_memory,
                          const std::function<void(Frame)>& on_frame) {
  absl::StatusOr<SliceReader> source = SliceReader::Open(buffer);
  if (!source.ok()) return source.status();
  do {
    FrameReader reader(open_memory);
    absl::StatusOr<Frame> frame;
    try {
      frame = ReadWith(&reader, &*source);
    } catch (const std::bad_alloc&) {
      return reader.FailForMemory(on_frame);
    }
    if (!frame.ok()) return frame.status();
    on_frame(*std::move(frame));
  } while (source->left() > 0);
  return absl::OkStatus();
}

absl::StatusOr<Frame> DecodeFrame(const grpc::ByteBuffer& buffer, const OpenMemory& open_memory) {
  std::vector<Frame> frames;
  const absl::Status status =
      DecodeFrames(buffer, open_memory, [&](Frame frame) { frames.push_back(std::move(frame)); });
  if (!status.ok()) return status;
  if (frames.size() != 1) {
    return absl::DataLossError(absl::StrCat(frames.size(), " feed frames in the place of one"));
  }
  return std::move(frames.front());
}

}  // namespace hetero::feed
