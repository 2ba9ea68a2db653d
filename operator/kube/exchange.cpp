#include "operator/kube/exchange.h"

#include <utility>

namespace hetero::kube {

bool Exchange::abandoned() const {
  std::lock_guard lock(mutex_);
  return abandoned_;
}

void Exchange::OnHead(int status, std::map<std::string, std::string> headers) {
  std::lock_guard lock(mutex_);
  head_.status = status;
  head_.headers = std::move(headers);
  news_ = true;
  changed_.notify_all();
}

Exchange::Verdict Exchange::OnBytes(std::string_view bytes, std::function<void()> resume) {
  std::lock_guard lock(mutex_);
  if (abandoned_ || ended_) return Verdict::kRefuse;
  received_ += bytes.size();
  if (received_ > limits_.body) {
    EndLocked(absl::ResourceExhaustedError("a reply of more than " + std::to_string(limits_.body) +
                                           " bytes"));
    return Verdict::kRefuse;
  }
  bytes_.append(bytes);
  news_ = true;
  changed_.notify_all();
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
  changed_.notify_all();
}

void Exchange::OnEnd() { OnFailure(absl::OkStatus()); }

void Exchange::OnFailure(absl::Status status) {
  std::lock_guard lock(mutex_);
  EndLocked(std::move(status));
}

Exchange::Wake Exchange::AwaitNews(base::Instant deadline, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const bool news = changed_.wait_until(lock, stop, deadline, [this] { return news_; });
  news_ = false;
  if (news) return Wake::kNews;
  return stop.stop_requested() ? Wake::kStopped : Wake::kDeadline;
}

Exchange::Wake Exchange::AwaitEnd(base::Instant deadline, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, stop, deadline, [this] { return ended_; })) return Wake::kNews;
  return stop.stop_requested() ? Wake::kStopped : Wake::kDeadline;
}

bool Exchange::has_head() const {
  std::lock_guard lock(mutex_);
  return head_.status != 0;
}

bool Exchange::ended() const {
  std::lock_guard lock(mutex_);
  return ended_;
}

absl::Status Exchange::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

Response Exchange::head() const {
  std::lock_guard lock(mutex_);
  return head_;
}

std::string Exchange::TakeBytes() {
  std::string taken;
  std::function<void()> resume;
  {
    std::lock_guard lock(mutex_);
    taken.swap(bytes_);
    resume.swap(resume_);
  }
  if (resume) resume();
  return taken;
}

void Exchange::Abandon() {
  std::function<void()> resume;
  {
    std::lock_guard lock(mutex_);
    abandoned_ = true;
    bytes_ = std::string();
    resume.swap(resume_);
  }
  if (resume) resume();
}

}  // namespace hetero::kube
