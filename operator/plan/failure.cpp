#include "operator/plan/failure.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "operator/plan/node_loss.h"

namespace hetero::plan {
namespace {

constexpr size_t kMaxMessageBytes = 3072;

// Reasons of a pod's end that the kubelet, the scheduler or the node's shutdown gives.
constexpr std::array<std::string_view, 8> kDisruptions = {
    "Evicted",      "NodeLost",   "Shutdown",  "NodeShutdown",
    "NodeAffinity", "Preempting", "Preempted", "Terminated"};

bool IsDisruption(const ObservedPod& pod) {
  return pod.disrupted ||
         std::find(kDisruptions.begin(), kDisruptions.end(), pod.reason) != kDisruptions.end();
}

// Only a trainer that took part in a step can have left one: its replacement is not the one that
// the head still misses.
bool HeadLostIt(const Pass& pass, const Slot& slot) {
  const HeadReport* report = pass.Report();
  return report != nullptr && report->connected && slot.role->type == api::RoleType::kGpuWorker &&
         slot.pod->runtime == ObservedPod::Runtime::kRunning &&
         slot.pod->created < report->last_step_time && report->lost.contains(slot.member());
}

// Told to end by a drain or a node's shutdown before the job was over. The end of a trainer with
// code 0 is always the training's own.
bool EndedEarly(const Slot& slot) {
  return slot.pod->succeeded() && slot.pod->disrupted &&
         (slot.role->type == api::RoleType::kCpuWorker ||
          (slot.role->type == api::RoleType::kHead && !api::VerdictFromJson(slot.pod->message)));
}

std::string Ending(const std::string& text) {
  if (text.size() <= kMaxMessageBytes) return text;
  size_t start = text.size() - kMaxMessageBytes;
  while (start < text.size() && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) ++start;
  return text.substr(start);
}

}  // namespace

std::string Failure::Describe() const {
  std::string text = absl::StrCat(slot->member(), " failed: ", reason);
  if (exit_code) absl::StrAppend(&text, ", exit code ", *exit_code);
  return text;
}

std::optional<Failure> FailureOf(Pass& pass, const Slot& slot) {
  if (slot.pod == nullptr || slot.pod->deletion_time) return std::nullopt;
  const ObservedPod& pod = *slot.pod;
  Failure failure;
  failure.slot = &slot;
  failure.time = pod.finished.value_or(pass.now);
  failure.message = pod.message;
  if (pod.failed() || EndedEarly(slot)) {
    failure.disruption = IsDisruption(pod) || OnLostNode(pass, pod);
    if (pod.runtime == ObservedPod::Runtime::kTerminated) failure.exit_code = pod.exit_code;
    failure.reason = !pod.reason.empty() ? pod.reason : pod.disrupted ? "Disruption" : "Error";
    return failure;
  }
  if (pod.succeeded()) return std::nullopt;
  if (OnLostNode(pass, pod)) {
    failure.disruption = true;
    failure.reason = "NodeLost";
    failure.message = absl::StrCat("node ", pod.node, " has been NotReady for longer than ",
                                   base::ToSeconds(pass.settings.node_lost_grace), " s");
    return failure;
  }
  if (HeadLostIt(pass, slot)) {
    failure.disruption = OnSilentNode(pass, pod);
    failure.reason = "Lost";
    failure.message = absl::StrCat("silent for longer than runPolicy.memberTimeoutSeconds (",
                                   pass.policy.member_timeout_seconds, " s)");
    return failure;
  }
  return std::nullopt;
}

api::FirstFailure Evidence(const Failure& failure) {
  const ObservedPod& pod = *failure.slot->pod;
  api::FirstFailure evidence;
  evidence.pod = pod.name;
  evidence.role = failure.slot->role->name;
  evidence.node = pod.node;
  evidence.exit_code = failure.exit_code;
  if (pod.signal != 0) evidence.signal = pod.signal;
  evidence.reason = failure.reason;
  evidence.message = Ending(failure.message);
  evidence.time = std::chrono::floor<std::chrono::seconds>(failure.time);
  return evidence;
}

}  // namespace hetero::plan
