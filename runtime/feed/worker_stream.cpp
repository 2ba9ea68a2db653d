#include "runtime/feed/worker_stream.h"

#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "hetero/v1/feed.pb.h"

namespace hetero::feed {
namespace {
constexpr double kBriskSeconds = 0.001;
}  // namespace

WorkerStream* WorkerStream::Open(std::string peer, TicketIntake* intake, AtomicCounters* counters,
                                 const TransportServers& transports) {
  auto* stream = new WorkerStream(std::move(peer), intake, counters);
  stream->self_.reset(stream);
  for (const auto& transport : transports) {
    stream->senders_.push_back(transport->NewSender(stream->self_));
  }
  // The trainer takes the metadata as the sign that this worker is there.
  stream->StartSendInitialMetadata();
  stream->StartRead(&stream->request_);
  return stream;
}

void WorkerStream::OnReadDone(bool ok) noexcept {
  if (!ok) return End(grpc::Status::OK);  // the trainer has gone, or the server shuts down
  v1::TicketRequest offers;
  const absl::StatusOr<TicketRequest> request = DecodeRequest(request_, &offers);
  if (!request.ok()) {
    log::Warning("a trainer's stream is closed",
                 {{"peer", peer_}, {"error", request.status().message()}});
    return End(
        grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, std::string(request.status().message())));
  }
  for (const auto& sender : senders_) sender->Accept(offers);
  intake_.Avoid(request->fatal);
  for (const int64_t id : request->cancel) CancelTicket(id);
  for (const Ticket& ticket : request->issue) Submit(ticket);
  request_.Clear();
  StartRead(&request_);
}

void WorkerStream::Submit(const Ticket& ticket) {
  const std::shared_ptr<WorkerStream> self = self_;
  TicketExecutor::Callbacks callbacks;
  callbacks.on_started = [self](const Ticket& started) { self->SendStarted(started); };
  callbacks.on_done = [self](const Ticket& done, absl::StatusOr<std::unique_ptr<Batch>> batch) {
    self->SendResult(done, std::move(batch));
  };
  callbacks.slabs = [self](int64_t bytes) { return self->SlabFor(bytes); };
  const base::MutexLock lock(mutex_);
  if (ended_) return;  // while the request was read
  queued_[ticket.id] = intake_.Submit(owner_, ticket, std::move(callbacks));
}

void WorkerStream::CancelTicket(int64_t id) {
  const base::MutexLock lock(mutex_);
  const auto it = queued_.find(id);
  if (it == queued_.end()) return;
  intake_.Cancel(it->second);
  queued_.erase(it);
}

void WorkerStream::SendStarted(const Ticket& ticket) {
  grpc::ByteBuffer frame = EncodeStarted(ticket);
  const base::MutexLock lock(mutex_);
  queued_.erase(ticket.id);
  if (ended_) return;
  frames_.push_back(std::move(frame));
  // Where tickets take no time, the word of it goes with the batch, which is as good as there.
  if (!writing_ && !brisk_) SendQueued();
}

Slab WorkerStream::SlabFor(int64_t bytes) {
  for (const auto& sender : senders_) {
    if (std::optional<Slab> slab = sender->Allocate(bytes)) return *std::move(slab);
  }
  return Slab(bytes);
}

void WorkerStream::SendResult(const Ticket& ticket, absl::StatusOr<std::unique_ptr<Batch>> batch) {
  // This worker ends: the ticket is no worse for it, and goes elsewhere when the stream does.
  if (absl::IsCancelled(batch.status())) return;
  if (!batch.ok()) {
    log::Warning(
        "a ticket failed",
        {{"ticket", ticket.id}, {"rank", ticket.rank}, {"error", batch.status().message()}});
    return Send(EncodeFailed(ticket, batch.status()));
  }
  counters_.batches += 1;
  counters_.samples += (*batch)->count();
  counters_.bytes += (*batch)->tensor_bytes();
  counters_.produce_seconds += (*batch)->work_seconds;
  counters_.read_seconds += (*batch)->read_seconds;
  const bool brisk = (*batch)->work_seconds < kBriskSeconds;
  Send(EncodeBatch(*std::move(batch)));
  const base::MutexLock lock(mutex_);
  brisk_ = brisk;
}

void WorkerStream::Send(grpc::ByteBuffer frame) {
  const base::MutexLock lock(mutex_);
  if (ended_) return;
  frames_.push_back(std::move(frame));
  if (!writing_) SendQueued();
}

void WorkerStream::SendQueued() {
  if (frames_.empty()) return;
  for (const auto& sender : senders_) {
    if (sender->Send(&frames_)) return;
  }
}

void WorkerStream::Write(const grpc::ByteBuffer& message) {
  mutex_.AssertHeld();  // Send() is called with it
  message_ = message;   // refers to the same bytes
  writing_ = true;
  StartWrite(&message_);
}

void WorkerStream::OnWriteDone(bool ok) noexcept {
  const base::MutexLock lock(mutex_);
  writing_ = false;
  message_.Clear();
  if (ended_ || !ok) return;  // after a failed write the read fails too, and ends the stream
  SendQueued();
}

void WorkerStream::OnReady() {
  const base::MutexLock lock(mutex_);
  if (!ended_ && !writing_) SendQueued();
}

void WorkerStream::Break(const absl::Status& reason) {
  End(grpc::Status(grpc::StatusCode::UNAVAILABLE, std::string(reason.message())));
}

void WorkerStream::End(const grpc::Status& status) {
  // Nobody takes these any more; their memory is others' now. Destroyed without the lock.
  std::deque<grpc::ByteBuffer> dropped;
  const base::MutexLock lock(mutex_);
  if (ended_) return;
  ended_ = true;
  dropped.swap(frames_);
  for (const auto& [id, handle] : queued_) intake_.Cancel(handle);
  queued_.clear();
  intake_.Part();
  for (const auto& sender : senders_) sender->End();
  Finish(status);  // from here on the server may be gone
}

void WorkerStream::OnDone() noexcept {
  const std::shared_ptr<WorkerStream> last = std::move(self_);
}

}  // namespace hetero::feed
