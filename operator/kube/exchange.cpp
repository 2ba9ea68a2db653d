#include "operator/kube/exchange.h"

#include <utility>

namespace hetero::kube {

bool Exchange::abandoned() const {
  const base::MutexLock lock(mutex_);
  return abandoned_;
}

void Exchange::OnHead(int status, std::map<std::string, std::string> headers) {
  const base::MutexLock lock(mutex_);
  head_.status = status;
  head_.headers = std::move(headers);
  news_ = true;
  changed_.NotifyAll();
}

Exchange::Verdict Exchange::OnBytes(std::string_view bytes, std::function<void()> resume) {
  const base::MutexLock lock(mutex_);
  if (abandoned_ || ended_) return Verdict::kRefuse;
  received_ += bytes.size();
  if (received_ > limits_.body) {
    EndLocked(absl::ResourceExhaustedError("a reply of more than " + std::to_string(limits_.body) +
                                           " bytes"));
    return Verdict::kRefuse;
  }
  bytes_.append(bytes);
  news_ = true;
  changed_.NotifyAll();
  if (bytes_.size() <= limits_.window) return Verdict::kGoOn;
  resume_ = std::move(resume);
  return Verdict::kPause;
}

void Exchange::EndLocked(absl::Status status) {
  if (ended_) return;
  ended_ = true;
  failure_ = status.ok() && head_.status == 0
                 ? absl::UnavailableError("the request was given up without a reply")
                 : std::move(status);
  news_ = true;
  changed_.NotifyAll();
}

void Exchange::OnEnd() { OnFailure(absl::OkStatus()); }

void Exchange::OnFailure(absl::Status status) {
  const base::MutexLock lock(mutex_);
  EndLocked(std::move(status));
}

Exchange::Wake Exchange::AwaitNews(base::Instant deadline, const std::stop_token& stop) {
  const base::MutexLock lock(mutex_);
  const bool news = changed_.WaitUntil(
      mutex_, deadline, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return news_; });
  news_ = false;
  if (news) return Wake::kNews;
  return stop.stop_requested() ? Wake::kStopped : Wake::kDeadline;
}

Exchange::Wake Exchange::AwaitEnd(base::Instant deadline, const std::stop_token& stop) {
  const base::MutexLock lock(mutex_);
  const bool ended = changed_.WaitUntil(
      mutex_, deadline, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; });
  if (ended) return Wake::kNews;
  return stop.stop_requested() ? Wake::kStopped : Wake::kDeadline;
}

bool Exchange::has_head() const {
  const base::MutexLock lock(mutex_);
  return head_.status != 0;
}

bool Exchange::ended() const {
  const base::MutexLock lock(mutex_);
  return ended_;
}

absl::Status Exchange::failure() const {
  const base::MutexLock lock(mutex_);
  return failure_;
}

Response Exchange::head() const {
  const base::MutexLock lock(mutex_);
  return head_;
}

std::string Exchange::TakeBytes() {
  std::string taken;
  std::function<void()> resume;
  {
    const base::MutexLock lock(mutex_);
    taken.swap(bytes_);
    resume.swap(resume_);
  }
  if (resume) resume();
  return taken;
}

void Exchange::Abandon() {
  std::function<void()> resume;
  {
    const base::MutexLock lock(mutex_);
    abandoned_ = true;
    bytes_ = std::string();
    resume.swap(resume_);
  }
  if (resume) resume();
}

}  // namespace hetero::kube
