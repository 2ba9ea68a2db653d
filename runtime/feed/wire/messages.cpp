#include "runtime/feed/wire/messages.h"

#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "hetero/v1/feed.pb.h"
#include "runtime/feed/wire/field_messages.h"
#include "runtime/feed/wire/slice_reader.h"

namespace hetero::feed {
namespace {

constexpr size_t kPrefixBytes = 8;  // header length and header checksum
constexpr uint32_t kMaxHeaderBytes = 64u << 20;
constexpr size_t kMaxErrorText = 4096;

void PutLittleEndian(uint32_t value, char* out) {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<char>(value >> (8 * i));
}

uint32_t GetLittleEndian(const uint8_t* in) {
  return uint32_t{in[0]} | uint32_t{in[1]} << 8 | uint32_t{in[2]} << 16 | uint32_t{in[3]} << 24;
}

void ToProto(const Ticket& ticket, v1::Ticket* out) {
  out->set_id(ticket.id);
  out->set_generation(ticket.generation);
  out->set_rank(ticket.rank);
  out->set_split(ticket.split == job::Split::kTrain ? v1::TRAIN : v1::VALIDATION);
  out->set_epoch(ticket.epoch);
  out->set_step(ticket.step);
  out->set_first_slot(ticket.slots.first);
  out->set_count(ticket.slots.count);
  out->set_left_to_trainer(ticket.left_to_trainer);
  out->set_guarded(ticket.guarded);
}

void ToProto(const FatalSample& sample, v1::FatalSample* out) {
  out->set_split(sample.split == job::Split::kTrain ? v1::TRAIN : v1::VALIDATION);
  out->set_sample_id(sample.id);
  out->set_reason(base::ToUtf8(sample.reason, kMaxErrorText));
}

FatalSample FromProto(const v1::FatalSample& sample) {
  return {sample.split() == v1::VALIDATION ? job::Split::kValidation : job::Split::kTrain,
          sample.sample_id(), base::ToUtf8(sample.reason(), kMaxErrorText)};
}

absl::StatusOr<Ticket> FromProto(const v1::Ticket& ticket) {
  if (ticket.split() != v1::TRAIN && ticket.split() != v1::VALIDATION) {
    return absl::DataLossError(absl::StrCat("ticket ", ticket.id(), " has unknown split ",
                                            static_cast<int>(ticket.split())));
  }
  const auto split = ticket.split() == v1::TRAIN ? job::Split::kTrain : job::Split::kValidation;
  return Ticket{ticket.id(),
                ticket.generation(),
                ticket.rank(),
                split,
                ticket.epoch(),
                ticket.step(),
                {ticket.first_slot(), ticket.count()},
                ticket.left_to_trainer(),
                ticket.guarded()};
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

absl::StatusOr<Frame> DecodeBatch(const v1::FrameHeader& header, Frame frame,
                                  const OpenMemory& open_memory, ByteSource* reader) {
  const bool named = header.memory_case() != v1::FrameHeader::MEMORY_NOT_SET;
  const absl::StatusOr<int64_t> bytes =
      TensorBytes(header, named ? std::numeric_limits<size_t>::max() : reader->left());
  if (!bytes.ok()) return bytes.status();
  auto batch = std::make_unique<Batch>();
  batch->ticket = frame.ticket;
  batch->shape = {header.height(), header.width(), header.channels()};
  batch->views = ViewsOf(header);
  absl::StatusOr<NamedMemory> memory = open_memory(header, *bytes);
  if (!memory.ok()) return memory.status();
  batch->images = std::move(memory->slab);
  frame.transport = memory->transport;
  uint8_t* wanted = memory->wanted.data();
  batch->labels.assign(header.labels().begin(), header.labels().end());
  batch->sample_ids.assign(header.sample_ids().begin(), header.sample_ids().end());
  batch->crcs.assign(header.sample_crc32c().begin(), header.sample_crc32c().end());
  for (const v1::BadSample& bad : header.bad_samples()) {
    batch->bad_samples.push_back({bad.slot(), bad.sample_id(), bad.replacement_id(),
                                  base::ToUtf8(bad.reason(), kMaxErrorText)});
  }
  for (const v1::FatalSample& fatal : header.fatal()) batch->fatal.push_back(FromProto(fatal));
  batch->work_seconds = header.work_seconds();
  batch->cpu_seconds = header.cpu_seconds();
  batch->read_seconds = header.read_seconds();
  batch->queued_seconds = header.queued_seconds();

  uint32_t crc = 0;
  const int64_t count = header.ticket().count();
  const int64_t sample_bytes = count == 0 ? 0 : *bytes / count;
  uint8_t* out = batch->images.data();
  for (int64_t i = 0; i < count; ++i, out += sample_bytes) {
    if (!named) {
      HETERO_RETURN_IF_ERROR(reader->Read(out, static_cast<size_t>(sample_bytes)));
    }
    // While it is in the cache.
    crc = base::Crc32c(out, static_cast<size_t>(sample_bytes), crc);
    if (wanted == nullptr) continue;
    std::memcpy(wanted, out, static_cast<size_t>(sample_bytes));
    wanted += sample_bytes;
  }
  if (header.has_fields()) HETERO_RETURN_IF_ERROR(ReadFields(header, reader, batch.get(), &crc));
  if (crc != header.batch_crc32c()) {
    frame.kind = Frame::Kind::kFailed;
    frame.damaged = true;
    frame.error = absl::DataLossError(
        absl::StrCat("the batch of ticket ", frame.ticket.id, " was damaged on its way: CRC32C ",
                     absl::Hex(crc), ", sent as ", absl::Hex(header.batch_crc32c())));
    return frame;
  }
  if (wanted != nullptr) batch->images = std::move(memory->wanted);
  frame.batch = std::move(batch);
  return frame;
}

absl::StatusOr<v1::FrameHeader> ReadHeader(ByteSource* reader) {
  std::array<uint8_t, kPrefixBytes> prefix;
  if (reader->left() < prefix.size()) {
    return absl::DataLossError("a feed frame ends inside its prefix");
  }
  HETERO_RETURN_IF_ERROR(reader->Read(prefix.data(), prefix.size()));
  const uint32_t size = GetLittleEndian(prefix.data());
  if (size > kMaxHeaderBytes || size > reader->left()) {
    return absl::DataLossError(absl::StrCat("a feed frame announces a header of ", size, " bytes, ",
                                            reader->left(), " were sent"));
  }
  std::string bytes(size, '\0');
  HETERO_RETURN_IF_ERROR(reader->Read(bytes.data(), size));
  if (base::Crc32c(bytes.data(), size) != GetLittleEndian(prefix.data() + 4)) {
    return absl::DataLossError("a feed frame's header was damaged on its way (CRC32C)");
  }
  v1::FrameHeader header;
  if (!header.ParseFromString(bytes)) {
    return absl::DataLossError("a feed frame's header is not a FrameHeader: versions differ?");
  }
  return header;
}

}  // namespace

absl::StatusOr<NamedMemory> NoMemory(const v1::FrameHeader& header, int64_t bytes) {
  if (header.memory_case() == v1::FrameHeader::MEMORY_NOT_SET) return NamedMemory{Slab(bytes), ""};
  return absl::DataLossError(absl::StrCat("batch frame of ticket ", header.ticket().id(),
                                          ": in memory that this stream does not have"));
}

absl::StatusOr<Frame> ReadFrame(const OpenMemory& open_memory, ByteSource* reader) {
  const absl::StatusOr<v1::FrameHeader> header = ReadHeader(reader);
  if (!header.ok()) return header.status();
  const absl::StatusOr<Ticket> ticket = FromProto(header->ticket());
  if (!ticket.ok()) return ticket.status();

  Frame frame;
  frame.ticket = *ticket;
  if (header->kind() == v1::FrameHeader::BATCH) {
    frame.kind = Frame::Kind::kBatch;
    return DecodeBatch(*header, std::move(frame), open_memory, reader);
  }
  if (header->kind() == v1::FrameHeader::STARTED) return frame;
  if (header->kind() != v1::FrameHeader::FAILED) {
    return absl::DataLossError(
        absl::StrCat("unknown kind ", static_cast<int>(header->kind()), " of feed frame"));
  }
  frame.kind = Frame::Kind::kFailed;
  const std::string error = base::ToUtf8(header->error(), kMaxErrorText);
  frame.error = absl::Status(static_cast<absl::StatusCode>(header->error_code()), error);
  if (frame.error.ok()) frame.error = absl::UnknownError(error);
  return frame;
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
  v1::FrameHeader fields = BatchHeader(*batch);
  batch->images.HandOver(&fields);
  std::vector<grpc::Slice> slices = {HeaderSlice(fields)};
  std::vector<grpc::Slice> of_fields;  // small ones, and copied
  if (batch->fields) {
    for (const FieldTensor& field : *batch->fields) {
      of_fields.emplace_back(field.bytes.data(), field.bytes.size());
    }
  }
  if (batch->images.size() > 0) {
    uint8_t* data = batch->images.data();
    const auto size = static_cast<size_t>(batch->images.size());
    const auto release = [](void* owner) { delete static_cast<Batch*>(owner); };
    slices.emplace_back(data, size, release, batch.release());
  }
  std::move(of_fields.begin(), of_fields.end(), std::back_inserter(slices));
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
  absl::StatusOr<SliceReader> reader = SliceReader::Open(buffer);
  if (!reader.ok()) return reader.status();
  do {
    absl::StatusOr<Frame> frame = ReadFrame(open_memory, &*reader);
    if (!frame.ok()) return frame.status();
    on_frame(*std::move(frame));
  } while (reader->left() > 0);
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
