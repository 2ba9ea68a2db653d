#include "runtime/head/status_service.h"

#include <utility>

namespace hetero::head {
namespace {

constexpr base::Duration kLongestSilence = std::chrono::seconds(1);

// The history is long and seldom changes: a stream carries each one once. `told` is the last.
v1::JobStatus WithNewHistory(v1::JobStatus status, std::string& told) {
  if (status.history() == told) {
    status.clear_history();
  } else {
    told = status.history();
  }
  return status;
}

}  // namespace

StatusService::StatusService(std::function<v1::JobStatus()> current, Requests requests,
                             base::Clock& clock)
    : current_(std::move(current)), requests_(std::move(requests)), clock_(clock) {}

void StatusService::Publish(const v1::JobStatus& status, bool last) {
  const base::MutexLock lock(mutex_);
  published_ = status;
  ++version_;
  last_ = last;
  changed_.NotifyAll();
}

void StatusService::Wake() {
  const base::MutexLock lock(mutex_);
  changed_.NotifyAll();
}

void StatusService::Close() {
  const base::MutexLock lock(mutex_);
  closed_ = true;
  changed_.NotifyAll();
}

grpc::Status StatusService::Watch(grpc::ServerContext* context, const v1::WatchRequest*,
                                  grpc::ServerWriter<v1::JobStatus>* writer) {
  std::string history;
  base::MutexLock lock(mutex_);
  int64_t seen = version_;
  if (!last_) {
    lock.Unlock();
    if (!writer->Write(WithNewHistory(current_(), history))) return grpc::Status::OK;
    lock.Lock();
  } else {
    --seen;
  }
  base::Instant written = clock_.Now();
  while (true) {
    if (version_ != seen) {
      seen = version_;
      written = clock_.Now();
      const v1::JobStatus status = WithNewHistory(published_, history);
      const bool last = last_;
      lock.Unlock();
      const bool heard = writer->Write(status);
      if (last || !heard) return grpc::Status::OK;
      lock.Lock();
      continue;
    }
    if (closed_) return {grpc::StatusCode::UNAVAILABLE, "the head is shutting down"};
    if (context->IsCancelled()) return grpc::Status::CANCELLED;
    if (clock_.Now() - written >= kLongestSilence) {
      written = clock_.Now();
      lock.Unlock();
      v1::JobStatus status = current_();
      status.clear_history();  // readers take nothing new from an unchanged status
      status.set_unchanged(true);
      if (!writer->Write(status)) return grpc::Status::OK;
      lock.Lock();
      continue;
    }
    changed_.Wait(mutex_);
  }
}

grpc::Status StatusService::Stop(grpc::ServerContext*, const v1::StopRequest* request,
                                 v1::StopReply*) {
  v1::StopRequest named = *request;
  if (named.reason().empty()) named.set_reason("requested through the status port");
  requests_.stop(named);
  return grpc::Status::OK;
}

grpc::Status StatusService::ReportExit(grpc::ServerContext*, const v1::ExitReport* report,
                                       v1::ExitReply*) {
  requests_.report_exit(*report);
  return grpc::Status::OK;
}

grpc::Status StatusService::Warn(grpc::ServerContext*, const v1::Notices* notices,
                                 v1::NoticesReply*) {
  requests_.warn(*notices);
  return grpc::Status::OK;
}

}  // namespace hetero::head
