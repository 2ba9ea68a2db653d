#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/feed/batch.h"
#include "runtime/feed/byte_source.h"
#include "runtime/feed/shared_region.h"

// Messages of /hetero.v1.Feed/Stream (proto/hetero/v1/feed.proto) to and from gRPC byte buffers.
// Decoding trusts nothing: every length is checked before it is used.
namespace hetero::feed {

inline constexpr char kStreamMethod[] = "/hetero.v1.Feed/Stream";

// A data connection (data_socket.h) that a trainer is about to open beside its stream.
struct DataOffer {
  uint64_t id = 0;  // random
  std::string key;  // kDataKeyBytes of it, for TLS; empty: plain text
};

// Trainer -> worker.
struct TicketRequest {
  std::vector<Ticket> issue;
  std::vector<int64_t> cancel;  // ticket ids
  uint64_t region_token = 0;    // TrainerRegion's; 0: none
  std::optional<DataOffer> data;
};
grpc::ByteBuffer EncodeRequest(const TicketRequest& request);
absl::StatusOr<TicketRequest> DecodeRequest(const grpc::ByteBuffer& buffer);

// Worker -> trainer.
struct Frame {
  enum class Kind { kStarted, kBatch, kFailed };
  Kind kind = Kind::kStarted;
  Ticket ticket;
  std::unique_ptr<Batch> batch;  // kBatch only; `producer` is left empty
  absl::Status error;            // kFailed only, never OK
  bool damaged = false;          // kFailed only: the batch was sent, but changed on its way
  bool direct = false;           // read from a data connection, past gRPC
};
grpc::ByteBuffer EncodeStarted(const Ticket& ticket);
grpc::ByteBuffer EncodeFailed(const Ticket& ticket, const absl::Status& error);
// Borrows the batch's slab: no tensor byte is copied, and the batch lives until gRPC has sent it. A
// slab in shared memory is handed over, and only named.
grpc::ByteBuffer EncodeBatch(std::unique_ptr<Batch> batch);

// Several frames as one message, so that small ones do not cost a write each; nothing is copied.
grpc::ByteBuffer JoinFrames(const std::vector<grpc::ByteBuffer>& frames);

// Hands the frames of a message to `on_frame`, in order. Copies tensor bytes once, into a new slab,
// or leaves them where they are in `region`, which is null for a stream without one.
// A batch whose tensor bytes are not those that the header's checksum was computed of comes as
// kFailed with kDataLoss, so that its ticket can be issued again. Anything else that is wrong with
// a frame is an error: kDataLoss naming what was found, and nothing from there on can be used.
absl::Status DecodeFrames(const grpc::ByteBuffer& buffer, const TrainerRegion* region,
                          const std::function<void(Frame)>& on_frame);
// The next frame, in the same way; a damaged batch leaves `source` at the frame that follows.
absl::StatusOr<Frame> ReadFrame(const TrainerRegion* region, ByteSource* source);
// A message with exactly one frame.
absl::StatusOr<Frame> DecodeFrame(const grpc::ByteBuffer& buffer,
                                  const TrainerRegion* region = nullptr);

}  // namespace hetero::feed
