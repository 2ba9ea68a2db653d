#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/failure_decision.h"
#include "operator/plan/pass.h"

namespace hetero::plan {

// One member that ended badly, has to be given up, or left while it is wanted.
struct Failure {
  const Slot* slot = nullptr;
  bool disruption = false;  // the cluster's doing: costs nothing
  enum class Kind {
    kFailed,
    kLeft,     // a CPU worker that an earlier head let go: wanted again, and nobody's fault
    kStopped,  // told to stop in order, as then all of the attempt are: nobody's fault either
    kAsked,    // a trainer that left in order, as it was asked to, while the others go on
  };
  Kind kind = Kind::kFailed;
  std::optional<int32_t> exit_code;  // of the container `runtime`, when it ran and ended
  std::string reason;                // OOMKilled, Error, Evicted, NodeLost, Lost, ...
  std::string message;
  base::WallTime time;

  bool blameless() const { return kind != Kind::kFailed; }
  api::FailureFacts facts() const { return {exit_code, reason, disruption}; }
  // "gpu-1 failed: OOMKilled, exit code 137".
  std::string Describe() const;
};

// The kubelet of the pod's node would not run it: something there was used up, or is out of order.
// Nothing about the job is wrong.
bool RejectedByNode(const ObservedPod& pod);

// What is wrong with the slot's pod, if anything. A pod that somebody deletes is on its way to be
// replaced and therefore no failure.
std::optional<Failure> FailureOf(Pass& pass, const Slot& slot);

// The evidence that status.firstFailure keeps; at most 3 KiB of the last words.
api::FirstFailure Evidence(const Failure& failure);

// When the first to fail was found silent, and its kubelet says only now how it had ended before
// that (a busy node, a killed process): the evidence is of that end. One after it was found may be
// the deletion's.
void CompleteEvidence(Pass& pass);

}  // namespace hetero::plan
