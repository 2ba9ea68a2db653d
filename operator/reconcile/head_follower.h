#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "operator/plan/observed.h"
#include "operator/plan/plan.h"
#include "operator/reconcile/certificates.h"

namespace hetero::reconcile {

// One status stream per running job, over gRPC's callback API: no thread per job, nothing on the
// reconcile path. What a head says lands in a map; `changed` is then called with the job's key.
// Broken streams are dialled again with backoff (0.2 s to 5 s). Safe from any thread.
class HeadFollower {
 public:
  using Changed = std::function<void(const std::string& key)>;
  HeadFollower(base::Clock& clock, const OperatorIdentity& identity, Changed changed);
  ~HeadFollower();  // ends all streams

  // Opens, keeps or replaces the stream of `key`; none closes it and forgets the report.
  void Follow(const std::string& key, const std::optional<plan::HeadTarget>& target);
  std::optional<plan::HeadReport> Report(const std::string& key) const;
  // Sends Status.ReportExit in the background, with a 5 s deadline; a failure is only logged (the
  // head notices by itself).
  void ReportExit(const std::string& key, const plan::Effect& effect);
  size_t streams() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace hetero::reconcile
