#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "operator/reconcile/certificates.h"
#include "operator/reconcile/heads.h"

namespace hetero::reconcile {

// One status stream per running job, over gRPC's callback API: no thread per job, nothing on the
// reconcile path. What a head says lands in a map; `changed` is then called with the job's key, on
// any thread and at most every 200 ms unless the state changed; it must return at once. What a head
// may send, and how fast it is read, is limited (head_limits.h). Broken streams are dialled again
// with backoff (0.2 s to 5 s). Safe from any thread.
class HeadFollower : public Heads {
 public:
  using Changed = std::function<void(const std::string& key)>;
  // `open_streams` is kept at the number of streams that hold memory.
  HeadFollower(base::Clock& clock, const OperatorIdentity& identity, Changed changed,
               std::optional<metrics::Gauge> open_streams = std::nullopt);
  ~HeadFollower() override;  // ends all streams and waits for their callbacks

  void Follow(const std::string& key, const std::optional<plan::HeadTarget>& target) override;
  std::optional<plan::HeadReport> Report(const std::string& key) const override;
  void ReportExit(const std::string& key, const plan::ReportExit& exit) override;
  void Stop(const std::string& key, const plan::StopHead& stop) override;
  void Warn(const std::string& key, const plan::WarnHead& warn) override;
  // A renewed certificate of the same authority, for the streams opened from now on.
  void UseCertificate(const children::Leaf& leaf);
  size_t streams() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace hetero::reconcile
