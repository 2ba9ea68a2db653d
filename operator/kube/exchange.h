#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "operator/kube/transport.h"

namespace hetero::kube {

// One request under way: what its caller, who waits, and the network's threads, which must never
// wait, have in common. The caller may leave at any time; what still arrives is then refused.
class Exchange {
 public:
  struct Limits {
    size_t body;    // bytes in all; more is kResourceExhausted
    size_t window;  // bytes not yet taken above which the network is asked to pause
  };
  explicit Exchange(Limits limits) : limits_(limits) {}

  // The network's side.
  bool abandoned() const;
  // OnBytes may come before it.
  void OnHead(int status, std::map<std::string, std::string> headers);
  enum class Verdict { kGoOn, kPause, kRefuse };
  // kPause: the bytes are kept, but nothing more is to be read before `resume` runs, which happens
  // once, on any thread.
  Verdict OnBytes(std::string_view bytes, std::function<void()> resume);
  // Exactly one of these comes last; later ones are ignored.
  void OnEnd();
  void OnFailure(absl::Status status);

  // The caller's side.
  enum class Wake { kNews, kDeadline, kStopped };
  // Until a head, bytes, or the end has come since the last call.
  Wake AwaitNews(base::Instant deadline, const std::stop_token& stop);
  Wake AwaitEnd(base::Instant deadline, const std::stop_token& stop);
  bool has_head() const;
  bool ended() const;
  absl::Status failure() const;  // OK unless it ended with one
  // Status and headers, no body.
  Response head() const;
  // The bytes that have come since the last call.
  std::string TakeBytes();
  // The caller leaves.
  void Abandon();

 private:
  void EndLocked(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;                  // news_, ended_
  Response head_ ABSL_GUARDED_BY(mutex_);  // status 0: not there yet
  std::string bytes_ ABSL_GUARDED_BY(mutex_);
  size_t received_ ABSL_GUARDED_BY(mutex_) = 0;
  bool news_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> resume_ ABSL_GUARDED_BY(mutex_);  // of the network, while it pauses
};

}  // namespace hetero::kube
