#include "runtime/feed/trainer_stream.h"

#include <grpcpp/generic/generic_stub.h>

#include <utility>

namespace hetero::feed {

std::shared_ptr<TrainerStream> TrainerStream::Dial(const std::shared_ptr<grpc::Channel>& channel,
                                                   Callbacks callbacks) {
  const std::shared_ptr<TrainerStream> stream(new TrainerStream(std::move(callbacks)));
  stream->self_ = stream;
  grpc::GenericStub stub(channel);
  stub.PrepareBidiStreamingCall(&stream->context_, kStreamMethod, grpc::StubOptions(),
                                stream.get());
  stream->AddHold();  // for the writes that start outside gRPC's callbacks
  stream->StartRead(&stream->frame_);
  stream->StartCall();
  return stream;
}

void TrainerStream::Send(const TicketRequest& request) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  requests_.push_back(EncodeRequest(request));
  if (requests_.size() == 1) StartWrite(&requests_.front());
}

void TrainerStream::Cancel() { context_.TryCancel(); }

void TrainerStream::OnReadInitialMetadataDone(bool ok) {
  if (ok) callbacks_.on_up();
}

void TrainerStream::OnReadDone(bool ok) {
  if (!ok) {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    RemoveHold();
    return;
  }
  absl::StatusOr<Frame> frame = DecodeFrame(frame_);
  frame_.Clear();
  if (frame.ok()) {
    callbacks_.on_frame(*std::move(frame));
  } else {
    // Where the next frame begins can no longer be trusted, nor which ticket this one answered.
    broken_ = frame.status();
    context_.TryCancel();
  }
  StartRead(&frame_);
}

void TrainerStream::OnWriteDone(bool ok) {
  const std::lock_guard lock(mutex_);
  requests_.pop_front();
  if (ended_ || !ok) return;  // after a failed write the read fails too
  if (!requests_.empty()) StartWrite(&requests_.front());
}

void TrainerStream::OnDone(const grpc::Status& status) {
  const absl::Status reason =
      broken_.ok()
          ? absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message())
          : broken_;
  const std::function<void(absl::Status)> on_down = callbacks_.on_down;
  self_.reset();  // this object may be gone from here on
  on_down(reason);
}

}  // namespace hetero::feed
