#pragma once

#include <optional>
#include <string>

#include "operator/plan/effect.h"
#include "operator/plan/head_target.h"
#include "operator/plan/observed.h"

namespace hetero::reconcile {

// What a reconcile knows of and tells heads. Safe from any thread; never waits for one.
class Heads {
 public:
  virtual ~Heads() = default;

  // Opens, keeps or replaces the stream of `key`; none closes it and forgets the report.
  virtual void Follow(const std::string& key, const std::optional<plan::HeadTarget>& target) = 0;
  virtual std::optional<plan::HeadReport> Report(const std::string& key) const = 0;
  // Sends Status.ReportExit in the background, with a 5 s deadline; a failure is only logged (the
  // head notices by itself).
  virtual void ReportExit(const std::string& key, const plan::ReportExit& exit) = 0;
  // Sends Status.Stop in the same way; once the head has heard, its report says so (told_to_end).
  virtual void Stop(const std::string& key, const plan::StopHead& stop) = 0;
  // Sends Status.Warn likewise; the head says in its status what it has heard.
  virtual void Warn(const std::string& key, const plan::WarnHead& warn) = 0;
};

}  // namespace hetero::reconcile
