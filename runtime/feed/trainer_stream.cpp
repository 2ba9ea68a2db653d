#include "runtime/feed/trainer_stream.h"

#include <grpcpp/generic/generic_stub.h>

#include <random>
#include <utility>

#include "base/log.h"

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

void TrainerStream::OpenData(bool secured) {
  std::random_device random;
  DataOffer offer{.id = uint64_t{random()} << 32 | random(), .key = secured ? NewDataKey() : ""};
  if (offer.id == 0 || (secured && offer.key.empty())) return;
  const std::lock_guard lock(mutex_);
  if (ended_ || data_ != nullptr) return;
  absl::StatusOr<std::unique_ptr<DataReceiver>> data = DataReceiver::Start(
      context_.peer(), offer,
      {.on_answer = callbacks_.on_data,
       .on_frame = callbacks_.on_frame,
       .on_end = [this](const absl::Status& status, bool dialled) { OnDataEnd(status, dialled); }});
  if (!data.ok()) {
    log::Info("batches come over gRPC", {{"reason", data.status().message()}});
    return;
  }
  data_ = *std::move(data);
  next_.data = std::move(offer);
  if (!writing_) WriteNext();
}

void TrainerStream::OnDataEnd(const absl::Status& status, bool dialled) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
  }
  if (dialled) return Break(status);  // whether it was taken up, and what was lost, nobody can say
  log::Info("batches come over gRPC", {{"reason", status.message()}, {"peer", context_.peer()}});
}

void TrainerStream::Break(const absl::Status& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (broken_.ok()) broken_ = reason;
  }
  context_.TryCancel();
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
  if (next_.issue.empty() && next_.cancel.empty() && !next_.data.has_value()) return;
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
    Break(decoded);
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
  std::unique_ptr<DataReceiver> data;
  absl::Status reason;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    data = std::move(data_);
    reason = broken_;
  }
  data.reset();  // no frame comes after on_down
  if (reason.ok()) {
    reason =
        absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }
  const std::function<void(absl::Status)> on_down = callbacks_.on_down;
  self_.reset();  // this object may be gone from here on
  on_down(reason);
}

}  // namespace hetero::feed
