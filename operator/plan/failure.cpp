#include "operator/plan/failure.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "api/reasons.h"
#include "operator/plan/hanging.h"
#include "operator/plan/members.h"
#include "operator/plan/node_loss.h"

namespace hetero::plan {
namespace {

constexpr size_t kMaxMessageBytes = 3072;

// Reasons of a pod's end that the kubelet, the scheduler or the node's shutdown gives.
constexpr std::array<std::string_view, 9> kDisruptions = {
    "Evicted",    "NodeLost",  "Shutdown",   "NodeShutdown",          "NodeAffinity",
    "Preempting", "Preempted", "Terminated", "ContainerStatusUnknown"};

// Reasons by which a kubelet rejects a pod (pkg/kubelet/lifecycle, pkg/kubelet/cm), besides
// OutOfcpu, OutOfmemory, OutOfpods and OutOf<any other resource>.
constexpr std::array<std::string_view, 13> kRejections = {"UnexpectedAdmissionError",
                                                          "UnexpectedPredicateFailureType",
                                                          "InvalidNodeInfo",
                                                          "NodeAffinity",
                                                          "NodeName",
                                                          "NodePorts",
                                                          "TaintToleration",
                                                          "TopologyAffinityError",
                                                          "SMTAlignmentError",
                                                          "AppArmor",
                                                          "SysctlForbidden",
                                                          "PodOSNotSupported",
                                                          "PodOSSelectorNodeLabelDoesNotMatch"};
constexpr char kOutOf[] = "OutOf";
constexpr char kRejected[] = "Pod was rejected";  // how kubelets begin the message

// What a container runtime says of containers whose end it has not seen: their node was reset.
constexpr char kEndUnseen[] = "Unknown";
constexpr int32_t kEndUnseenCode = 255;

bool IsDisruption(const ObservedPod& pod) {
  return pod.disrupted || RejectedByNode(pod) ||
         (pod.reason == kEndUnseen && pod.exit_code == kEndUnseenCode) ||
         std::find(kDisruptions.begin(), kDisruptions.end(), pod.reason) != kDisruptions.end();
}

// Told to end by a drain or a node's shutdown before the job was over. The end of a trainer with
// code 0 is always the training's own.
bool EndedEarly(const Slot& slot) {
  return slot.pod->succeeded() && slot.pod->disrupted &&
         (slot.role->type == api::RoleType::kCpuWorker ||
          (slot.role->type == api::RoleType::kHead && !api::VerdictFromJson(slot.pod->message)));
}

// With this code a head and its trainers end after an order: of all to stop, with a checkpoint; or
// of one trainer to leave (its pod was deleted, its node drained), while the others go on. Before
// the training has begun there is nothing to end in order.
constexpr int32_t kOrderedEnd = 130;

bool EndedInOrder(const Pass& pass, const Slot& slot) {
  return slot.role->type != api::RoleType::kCpuWorker &&
         slot.pod->runtime == ObservedPod::Runtime::kTerminated &&
         slot.pod->exit_code == kOrderedEnd && pass.before.attempt == pass.status.attempt &&
         pass.before.Is(api::ConditionType::kRegistered);
}

// Whether the order was for all: the head has ended by it, or says so.
bool JobWasStopped(const Pass& pass, const Slot& slot) {
  const ObservedPod* head = pass.HeadPod();
  const HeadReport* report = pass.Report();
  return slot.role->type == api::RoleType::kHead ||
         (head != nullptr && head->runtime == ObservedPod::Runtime::kTerminated &&
          head->exit_code == kOrderedEnd) ||
         (report != nullptr && report->state == HeadReport::State::kStopped);
}

std::string Ending(const std::string& text) {
  if (text.size() <= kMaxMessageBytes) return text;
  size_t start = text.size() - kMaxMessageBytes;
  while (start < text.size() && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) ++start;
  return text.substr(start);
}

}  // namespace

bool RejectedByNode(const ObservedPod& pod) {
  if (pod.phase != "Failed" || pod.runtime == ObservedPod::Runtime::kTerminated) return false;
  return pod.reason.starts_with(kOutOf) || pod.message.starts_with(kRejected) ||
         std::find(kRejections.begin(), kRejections.end(), pod.reason) != kRejections.end();
}

std::string Failure::Describe() const {
  switch (kind) {
    case Kind::kFailed:
      break;
    case Kind::kLeft:
      return slot->member() + " ended under an earlier head and is wanted again";
    case Kind::kStopped:
      return slot->member() + " was stopped in order, and so were all others";
    case Kind::kAsked:
      return slot->member() + " left in order, as it was asked to";
  }
  return api::DescribeFailure(slot->member(), facts());
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
    failure.reason = !pod.reason.empty() ? pod.reason
                     : pod.disrupted     ? api::failure::kDisruption
                                         : api::failure::kError;
    if (!failure.disruption && EndedInOrder(pass, slot)) {
      failure.kind = JobWasStopped(pass, slot) ? Failure::Kind::kStopped : Failure::Kind::kAsked;
      failure.disruption = true;
    }
    return failure;
  }
  if (LeftUnderEarlierHead(pass, slot)) {
    failure.kind = Failure::Kind::kLeft;
    failure.disruption = true;
    failure.message.clear();
    return failure;
  }
  if (pod.succeeded()) return std::nullopt;
  if (OnLostNode(pass, pod)) {
    failure.disruption = true;
    failure.reason = api::failure::kNodeLost;
    failure.message = absl::StrCat("node ", pod.node, " has been NotReady for longer than ",
                                   base::ToSeconds(pass.settings.node_lost_grace), " s");
    return failure;
  }
  if (HeadHangs(pass, slot)) {
    failure.reason = api::failure::kLost;
    failure.message =
        "the head hangs: it does not report to the operator, nor answer its node's kubelet";
    return failure;
  }
  if (HangsUnmet(pass, slot)) {
    failure.reason = api::failure::kLost;
    failure.message =
        "it hangs: it has not joined this head, nor does it answer its node's kubelet";
    return failure;
  }
  if (HeadLostIt(pass, slot)) {
    failure.disruption = OnSilentNode(pass, pod);
    failure.reason = api::failure::kLost;
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

void CompleteEvidence(Pass& pass) {
  std::optional<api::FirstFailure>& first = pass.status.first_failure;
  if (!first || first->reason != api::failure::kLost || first->exit_code || !first->time) return;
  for (const auto& pod : pass.seen.pods) {
    const bool given_up = pass.before.finished() || pass.Counted(*pod);
    if (pod->name != first->pod || !given_up) continue;
    if (!pod->failed() || !pod->finished) continue;
    if (*pod->finished < pod->created || *pod->finished >= *first->time) continue;
    first->exit_code = pod->exit_code;
    if (pod->signal != 0) first->signal = pod->signal;
    first->reason = pod->reason.empty() ? api::failure::kError : pod->reason;
    if (!pod->message.empty()) first->message = Ending(pod->message);
    first->time = std::chrono::floor<std::chrono::seconds>(*pod->finished);
    return;
  }
}

}  // namespace hetero::plan
