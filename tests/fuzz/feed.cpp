#include <cstring>

#include "base/crc32c.h"
#include "hetero/v1/feed.pb.h"
#include "runtime/feed/wire/messages.h"
#include "tests/fuzz/fuzz.h"

// What a worker sends to a trainer, and what a trainer asks of a worker. The first byte says which,
// and how much of a frame is made to fit, for no random input has the right checksums.
namespace hetero::feed {
namespace {

enum class Kind {
  kRawFrames,     // bytes as they come from the network
  kSealedFrames,  // per frame: lengths of header and tensor, both; the header's checksum is added
  kGoodFrames,    // the tensor's checksums are added, too
  kRequest,
  kFailure,  // a ticket and what went wrong with it, to be sent
};
constexpr int kKinds = 5;

void PutLittleEndian(uint32_t value, std::string* out) {
  for (int i = 0; i < 4; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

// The checksums of a batch that `tensor` would have.
void PutChecksums(const std::string& tensor, v1::FrameHeader* header) {
  header->clear_sample_crc32c();
  if (header->has_fields()) {
    for (int i = 0; i < header->sample_ids_size(); ++i) header->add_sample_crc32c(0);
    header->set_batch_crc32c(base::Crc32c(tensor.data(), tensor.size()));
    return;
  }
  const int count = header->labels_size();
  const size_t sample = count == 0 ? 0 : tensor.size() / static_cast<size_t>(count);
  for (int i = 0; i < count; ++i) {
    header->add_sample_crc32c(
        base::Crc32c(tensor.data() + sample * static_cast<size_t>(i), sample));
  }
  header->set_batch_crc32c(base::Crc32c(tensor.data(), sample * static_cast<size_t>(count)));
}

std::string Sealed(fuzz::Input* input, bool good) {
  std::string bytes;
  while (!input->empty()) {
    const size_t header_size = input->Short();
    const size_t tensor_size = input->Short();
    std::string header = input->Text(header_size);
    const std::string tensor = input->Text(tensor_size);
    v1::FrameHeader fields;
    if (good && fields.ParseFromString(header)) {
      PutChecksums(tensor, &fields);
      header = fields.SerializeAsString();
    }
    PutLittleEndian(static_cast<uint32_t>(header.size()), &bytes);
    PutLittleEndian(base::Crc32c(header.data(), header.size()), &bytes);
    bytes += header + tensor;
  }
  return bytes;
}

// In slices of `part` bytes, as a network would cut it.
grpc::ByteBuffer Buffer(const std::string& bytes, size_t part) {
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; i < bytes.size(); i += part) slices.emplace_back(bytes.substr(i, part));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// As a data connection: nobody knows how much will come.
class EndlessSource : public ByteSource {
 public:
  explicit EndlessSource(std::string_view bytes) : bytes_(bytes) {}
  size_t left() const override { return std::numeric_limits<size_t>::max(); }
  absl::Status Read(void* out, size_t size) override {
    if (size > bytes_.size()) return absl::UnavailableError("closed");
    std::memcpy(out, bytes_.data(), size);
    bytes_.remove_prefix(size);
    return absl::OkStatus();
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

// Of `frame`, for comparison.
std::string Describe(const Frame& frame) {
  std::string text = std::to_string(static_cast<int>(frame.kind)) + " ticket " +
                     std::to_string(frame.ticket.id) + " " + frame.error.ToString();
  if (frame.batch != nullptr) {
    text.append(reinterpret_cast<const char*>(frame.batch->images.data()),
                static_cast<size_t>(frame.batch->images.size()));
    for (const FieldTensor& field : frame.batch->fields.value_or(std::vector<FieldTensor>())) {
      text += field.spec.name;
      text.append(field.bytes.begin(), field.bytes.end());
    }
  }
  return text;
}

// With fields, the batch's own is computed of the bytes.
bool HasRightChecksums(const Batch& batch) {
  if (batch.fields) return true;
  const int64_t count = batch.count();
  const int64_t sample = count == 0 ? 0 : batch.images.size() / count;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t crc = base::Crc32c(batch.images.data() + i * sample, size_t(sample));
    if (crc != batch.crcs[size_t(i)]) return false;
  }
  return true;
}

void CheckBatch(std::unique_ptr<Batch> batch) {
  fuzz::Require(batch->count() == batch->ticket.slots.count, "another number of samples");
  fuzz::Require(batch->images.size() == batch->count() * batch->views * batch->shape.height *
                                            batch->shape.width * batch->shape.channels,
                "a tensor of another size than its shape");
  // The trainer computes them again of the bytes; what it sends on is its own.
  if (!HasRightChecksums(*batch)) return;
  const std::vector<int32_t> labels = batch->labels;
  const std::vector<int64_t> ids = batch->sample_ids;
  const size_t bad = batch->bad_samples.size();
  const int32_t views = batch->views;
  const std::optional<std::vector<FieldTensor>> fields = batch->fields;
  const absl::StatusOr<Frame> again = DecodeFrame(EncodeBatch(std::move(batch)));
  fuzz::Require(again.ok() && again->kind == Frame::Kind::kBatch, "a batch does not come back");
  fuzz::Require(again->batch->fields.has_value() == fields.has_value(), "fields come or go");
  for (size_t i = 0; fields && i < fields->size(); ++i) {
    const FieldTensor &sent = (*fields)[i], &come = (*again->batch->fields)[i];
    fuzz::Require(sent.spec == come.spec && sent.bytes == come.bytes, "a field changes on its way");
  }
  fuzz::Require(again->batch->labels == labels && again->batch->sample_ids == ids &&
                    again->batch->bad_samples.size() == bad && again->batch->views == views,
                "a batch changes on its way");
}

void CheckFrame(Frame frame) {
  switch (frame.kind) {
    case Frame::Kind::kStarted: {
      const absl::StatusOr<Frame> again = DecodeFrame(EncodeStarted(frame.ticket));
      fuzz::Require(again.ok() && again->ticket == frame.ticket, "a started ticket changes");
      return;
    }
    case Frame::Kind::kFailed: {
      fuzz::Require(!frame.error.ok(), "a failure without an error");
      const absl::StatusOr<Frame> again = DecodeFrame(EncodeFailed(frame.ticket, frame.error));
      fuzz::Require(again.ok() && again->ticket == frame.ticket, "a failed ticket changes");
      return;
    }
    case Frame::Kind::kBatch:
      CheckBatch(std::move(frame.batch));
  }
}

// The same frames whether they come in a message or, one after the other, over a connection.
void CheckFrames(const std::string& bytes, size_t part) {
  std::vector<std::string> in_message;
  const absl::Status status = DecodeFrames(Buffer(bytes, part), NoMemory, [&](Frame frame) {
    in_message.push_back(Describe(frame));
    CheckFrame(std::move(frame));
  });
  EndlessSource source(bytes);
  size_t read = 0;
  while (!source.at_end()) {
    const absl::StatusOr<Frame> frame = ReadFrame(NoMemory, &source);
    if (!frame.ok()) break;
    fuzz::Require(read < in_message.size() && in_message[read] == Describe(*frame),
                  "a connection gives another frame than a message");
    ++read;
  }
  fuzz::Require(read == in_message.size(), "a connection gives fewer frames than a message");
  fuzz::Require(status.ok() == (source.at_end() && !bytes.empty() && read > 0) || !status.ok(),
                "a message is accepted that a connection refuses");
}

void CheckRequest(const std::string& bytes, size_t part) {
  v1::TicketRequest offers, offers_again;
  const absl::StatusOr<TicketRequest> request = DecodeRequest(Buffer(bytes, part), &offers);
  if (!request.ok()) return;
  v1::TicketRequest offers_alone = offers;
  offers_alone.clear_issue();
  offers_alone.clear_cancel();
  const absl::StatusOr<TicketRequest> again =
      DecodeRequest(EncodeRequest(*request, &offers_alone), &offers_again);
  fuzz::Require(again.ok() && again->issue == request->issue && again->cancel == request->cancel &&
                    offers_again.region_token() == offers.region_token() &&
                    offers_again.has_data() == offers.has_data(),
                "a request changes on its way");
}

// The words of an error name files, whose names may be any bytes.
void CheckFailure(fuzz::Input* input) {
  const auto code = static_cast<absl::StatusCode>(1 + input->Byte() % 16);
  Ticket ticket;
  ticket.id = input->Short();
  const std::string text = input->RestAsText();
  const absl::StatusOr<Frame> frame = DecodeFrame(EncodeFailed(ticket, absl::Status(code, text)));
  fuzz::Require(frame.ok(), "a failure with this message does not come through");
  fuzz::Require(frame->ticket == ticket && frame->error.code() == code, "a failure changes");

  auto batch = std::make_unique<Batch>();
  batch->ticket = ticket;
  batch->ticket.slots.count = 1;
  batch->shape = {1, 1, 1};
  batch->images = Slab(1);
  *batch->images.data() = 0;
  batch->labels = {0};
  batch->sample_ids = {2};
  batch->crcs = {base::Crc32c(batch->images.data(), 1)};
  batch->bad_samples.push_back({.slot = 0, .sample_id = 2, .replacement_id = 3, .reason = text});
  const absl::StatusOr<Frame> sent = DecodeFrame(EncodeBatch(std::move(batch)));
  fuzz::Require(sent.ok() && sent->kind == Frame::Kind::kBatch,
                "a batch with a bad sample of this reason does not come through");
}

}  // namespace
}  // namespace hetero::feed

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero::feed;
  hetero::fuzz::Input input(data, size);
  const auto kind = static_cast<Kind>(input.Byte() % kKinds);
  const size_t part = size_t{1} + input.Byte();
  switch (kind) {
    case Kind::kRawFrames:
      CheckFrames(input.RestAsText(), part);
      break;
    case Kind::kSealedFrames:
      CheckFrames(Sealed(&input, false), part);
      break;
    case Kind::kGoodFrames:
      CheckFrames(Sealed(&input, true), part);
      break;
    case Kind::kRequest:
      CheckRequest(input.RestAsText(), part);
      break;
    case Kind::kFailure:
      CheckFailure(&input);
  }
  return 0;
}
