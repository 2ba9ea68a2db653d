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

void TrainerStream::Share(std::shared_ptr<const TrainerRegion> region) {
  const std::lock_guard lock(mutex_);
  next_.region_token = region->token();
  region_ = std::move(region);
}

void TrainerStream::Send(const TicketRequest& request) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  // While a message is being written, what comes next becomes one message. A worker reads what is
  // called back before what is issued, so a ticket that was not sent yet is called back here.
  for (const int64_t ticket : request.cancel) {
    const auto erased = std::erase_if(next_.issue, [&](const Ticket& t) { return t.id == ticket; });
    if (erased == 0) next_.cancel.push_back(ticket);
  }
  next_.issue.insert(next_.issue.end(), request.issue.begin(), request.issue.end());
  if (!writing_) WriteNext();
}

void TrainerStream::WriteNext() {
  if (next_.issue.empty() && next_.cancel.empty()) return;
  request_ = EncodeRequest(next_);
  next_ = {};
  writing_ = true;
  StartWrite(&request_);
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
  std::shared_ptr<const TrainerRegion> region;
  {
    const std::lock_guard lock(mutex_);
    region = region_;
  }
  const absl::Status decoded = DecodeFrames(frame_, region.get(), callbacks_.on_frame);
  frame_.Clear();
  if (!decoded.ok()) {
    // Where the next frame begins can no longer be trusted, nor which ticket this one answered.
    broken_ = decoded;
    context_.TryCancel();
  }
  StartRead(&frame_);
}

void TrainerStream::OnWriteDone(bool ok) {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  if (ended_ || !ok) return;  // after a failed write the read fails too
  WriteNext();
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
