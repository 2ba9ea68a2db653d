#include "runtime/feed/worker_stream.h"

#include <string>
#include <utility>
#include <vector>

#include "base/log.h"

namespace hetero::feed {
namespace {
constexpr int64_t kWorthSharing = 16 << 10;  // bytes; smaller batches travel with their frames
constexpr double kBriskSeconds = 0.001;
constexpr size_t kMostJoined = 1 << 20;  // bytes of frames that go as one message
}  // namespace

WorkerStream* WorkerStream::Open(TicketExecutor* executor, AtomicCounters* counters,
                                 WaysBeside ways) {
  auto* stream = new WorkerStream(executor, counters, ways);
  stream->self_.reset(stream);
  // The trainer takes the metadata as the sign that this worker is there.
  stream->StartSendInitialMetadata();
  stream->StartRead(&stream->request_);
  return stream;
}

void WorkerStream::OnReadDone(bool ok) {
  if (!ok) return End(grpc::Status::OK);  // the trainer has gone, or the server shuts down
  const absl::StatusOr<TicketRequest> request = DecodeRequest(request_);
  if (!request.ok()) {
    log::Warning("a trainer's stream is closed", {{"error", request.status().message()}});
    return End(
        grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, std::string(request.status().message())));
  }
  if (request->region_token != 0 && ways_.regions != nullptr) {
    const std::lock_guard lock(mutex_);
    region_token_ = request->region_token;
  }
  if (request->data.has_value() && ways_.connections != nullptr) ExpectData(*request->data);
  for (const int64_t id : request->cancel) CancelTicket(id);
  for (const Ticket& ticket : request->issue) Submit(ticket);
  request_.Clear();
  StartRead(&request_);
}

void WorkerStream::ExpectData(const DataOffer& offer) {
  {
    const std::lock_guard lock(mutex_);
    if (data_id_ != 0) return;  // once for each stream
    data_id_ = offer.id;
  }
  const std::shared_ptr<WorkerStream> self = self_;
  ways_.connections->Expect(
      offer,
      {.on_open = [self](std::shared_ptr<DataConnection> data) { self->OnData(std::move(data)); },
       .on_broken =
           [self](const absl::Status& status) {
             self->End(grpc::Status(grpc::StatusCode::UNAVAILABLE, std::string(status.message())));
           }});
}

void WorkerStream::OnData(std::shared_ptr<DataConnection> data) {
  const std::lock_guard lock(mutex_);
  if (ended_) return data->Close();
  data_ = std::move(data);
  if (!writing_) WriteNext();
}

void WorkerStream::Submit(const Ticket& ticket) {
  const std::shared_ptr<WorkerStream> self = self_;
  TicketExecutor::Callbacks callbacks;
  callbacks.on_started = [self](const Ticket& started) { self->SendStarted(started); };
  callbacks.on_done = [self](const Ticket& done, absl::StatusOr<std::unique_ptr<Batch>> batch) {
    self->SendResult(done, std::move(batch));
  };
  callbacks.slabs = [self](int64_t bytes) { return self->SlabFor(bytes); };
  const std::lock_guard lock(mutex_);
  queued_[ticket.id] = executor_.Submit(ticket, std::move(callbacks));
}

void WorkerStream::CancelTicket(int64_t id) {
  const std::lock_guard lock(mutex_);
  const auto it = queued_.find(id);
  if (it == queued_.end()) return;
  executor_.Cancel(it->second);
  queued_.erase(it);
}

void WorkerStream::CancelAll() {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, handle] : queued_) executor_.Cancel(handle);
  queued_.clear();
}

void WorkerStream::SendStarted(const Ticket& ticket) {
  grpc::ByteBuffer frame = EncodeStarted(ticket);
  const std::lock_guard lock(mutex_);
  queued_.erase(ticket.id);
  if (ended_) return;
  frames_.push_back(std::move(frame));
  // Where tickets take no time, the word of it goes with the batch, which is as good as there.
  if (!writing_ && !brisk_) WriteNext();
}

Slab WorkerStream::SlabFor(int64_t bytes) {
  std::shared_ptr<WorkerRegion> region;
  if (bytes >= kWorthSharing) {
    const std::lock_guard lock(mutex_);
    if (region_token_ != 0) {
      // The region takes another way than the word of it, and may come later.
      region_ = ways_.regions->Take(region_token_);
      if (region_ != nullptr) region_token_ = 0;
    }
    region = region_;
  }
  std::optional<Slab> slab = region != nullptr ? region->Allocate(bytes) : std::nullopt;
  return slab.has_value() ? *std::move(slab) : Slab(bytes);
}

void WorkerStream::SendResult(const Ticket& ticket, absl::StatusOr<std::unique_ptr<Batch>> batch) {
  if (!batch.ok()) {
    log::Warning(
        "a ticket failed",
        {{"ticket", ticket.id}, {"rank", ticket.rank}, {"error", batch.status().message()}});
    return Send(EncodeFailed(ticket, batch.status()));
  }
  counters_.batches += 1;
  counters_.samples += (*batch)->count();
  counters_.bytes += (*batch)->images.size();
  const bool brisk = (*batch)->work_seconds < kBriskSeconds;
  Send(EncodeBatch(*std::move(batch)));
  const std::lock_guard lock(mutex_);
  brisk_ = brisk;
}

void WorkerStream::Send(grpc::ByteBuffer frame) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  frames_.push_back(std::move(frame));
  if (!writing_) WriteNext();
}

void WorkerStream::WriteNext() {
  if (frames_.empty()) return;
  if (data_ != nullptr) return data_->Send(&frames_);
  std::vector<grpc::ByteBuffer> joined;
  size_t bytes = 0;
  do {
    bytes += frames_.front().Length();
    joined.push_back(std::move(frames_.front()));
    frames_.pop_front();
  } while (!frames_.empty() && bytes + frames_.front().Length() <= kMostJoined);
  message_ = joined.size() == 1 ? joined.front() : JoinFrames(joined);
  writing_ = true;
  StartWrite(&message_);
}

void WorkerStream::OnWriteDone(bool ok) {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  message_.Clear();
  if (ended_ || !ok) return;  // after a failed write the read fails too, and ends the stream
  WriteNext();
}

void WorkerStream::End(const grpc::Status& status) {
  CancelAll();
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  ended_ = true;
  if (data_id_ != 0) ways_.connections->Forget(data_id_);
  if (data_ != nullptr) data_->Close();
  Finish(status);
}

void WorkerStream::OnDone() { const std::shared_ptr<WorkerStream> last = std::move(self_); }

}  // namespace hetero::feed
