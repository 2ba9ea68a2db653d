#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/feed/wire/byte_source.h"

namespace hetero::v1 {
class FrameHeader;
class TicketRequest;
}  // namespace hetero::v1

// Messages of /hetero.v1.Feed/Stream (proto/hetero/v1/feed.proto) to and from gRPC byte buffers.
// Decoding trusts nothing: every length is checked before it is used.
namespace hetero::feed {

inline constexpr char kStreamMethod[] = "/hetero.v1.Feed/Stream";

// Trainer -> worker.
struct TicketRequest {
  std::vector<Ticket> issue;
  std::vector<int64_t> cancel;  // ticket ids
  std::vector<FatalSample> fatal;
};
// `offers`: what transports have to say (BatchReceiver::Offer), in fields of their own; null:
// nothing.
grpc::ByteBuffer EncodeRequest(const TicketRequest& request,
                               const v1::TicketRequest* offers = nullptr);
// Leaves the whole message in `offers`, for BatchSender::Accept.
absl::StatusOr<TicketRequest> DecodeRequest(const grpc::ByteBuffer& buffer,
                                            v1::TicketRequest* offers);

// Worker -> trainer.
struct Frame {
  enum class Kind { kStarted, kBatch, kFailed };
  Kind kind = Kind::kStarted;
  Ticket ticket;
  std::unique_ptr<Batch> batch;  // kBatch only; `producer` is left empty
  absl::Status error;            // kFailed only, never OK
  bool damaged = false;          // kFailed only: the batch was sent, but changed on its way
  std::string_view transport;    // Transport::name of what the batch came by; empty: not known
};
grpc::ByteBuffer EncodeStarted(const Ticket& ticket);
grpc::ByteBuffer EncodeFailed(const Ticket& ticket, const absl::Status& error);
// Borrows the batch's tensors: no byte of them is copied, and the batch lives until the last is
// sent. A slab whose owner hands it over is only named.
grpc::ByteBuffer EncodeBatch(std::unique_ptr<Batch> batch);

// Several frames as one message, so that small ones do not cost a write each; nothing is copied.
grpc::ByteBuffer JoinFrames(const std::vector<grpc::ByteBuffer>& frames);

// Memory of a batch: what its frame names (FrameHeader.memory) instead of bringing its bytes, or,
// where it names nothing, what the bytes are to be read into.
struct NamedMemory {
  Slab slab;
  std::string_view transport;  // whose it is; empty: the frame names nothing
  Slab wanted = Slab();        // where named bytes are to be instead; empty: they stay
};
using OpenMemory =
    std::function<absl::StatusOr<NamedMemory>(const v1::FrameHeader& header, int64_t bytes)>;
// For streams without any: the heap, and kDataLoss for what is named.
absl::StatusOr<NamedMemory> NoMemory(const v1::FrameHeader& header, int64_t bytes);

// Hands the frames of a message to `on_frame`, in order. Copies tensor bytes once, into a slab of
// `open_memory`, or leaves them where that finds them.
// A batch whose tensor bytes are not those that the header's checksum was computed of comes as
// kFailed with kDataLoss, so that its ticket can be issued again. Anything else that is wrong with
// a frame is an error: kDataLoss naming what was found, and nothing from there on can be used. So
// is a frame for which there is no memory, kResourceExhausted: its batch comes as kFailed before.
absl::Status DecodeFrames(const grpc::ByteBuffer& buffer, const OpenMemory& open_memory,
                          const std::function<void(Frame)>& on_frame);
// The next frame, in the same way; a damaged batch leaves `source` at the frame that follows. What
// `open_memory` throws goes on to the caller.
absl::StatusOr<Frame> ReadFrame(const OpenMemory& open_memory, ByteSource* source);
// A message with exactly one frame.
absl::StatusOr<Frame> DecodeFrame(const grpc::ByteBuffer& buffer,
                                  const OpenMemory& open_memory = NoMemory);

}  // namespace hetero::feed
