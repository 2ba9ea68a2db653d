#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "api/job_resource.h"
#include "api/labels.h"
#include "operator/reconcile/json_access.h"
#include "operator/reconcile/project.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;
using plan::ObservedPod;

template <typename Number>
Number NumberIn(const std::string& text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

const json& ConditionOf(const json& status, const char* type) {
  for (const json& condition : ListOf(status, "conditions")) {
    if (TextOf(condition, "type") == type) return condition;
  }
  return base::Absent();
}

std::string ImageOf(const json& spec) {
  for (const json& container : ListOf(spec, "containers")) {
    if (TextOf(container, "name") == api::kRuntimeContainer) return TextOf(container, "image");
  }
  return {};
}

const json& RuntimeStatusOf(const json& status) {
  for (const json& container : ListOf(status, "containerStatuses")) {
    if (TextOf(container, "name") == api::kRuntimeContainer) return container;
  }
  return base::Absent();
}

// The condition has no more than its last change; that of a container which never was ready is
// older than the container. A sidecar's trouble makes the pod unready too, but not this container.
void ReadUnready(const json& ready, const json& runtime, ObservedPod& pod) {
  if (TextOf(ready, "status") != "False" || FieldOf(runtime, "ready") != false) return;
  const std::optional<base::WallTime> started =
      TimeOf(FieldOf(FieldOf(runtime, "state"), "running"), "startedAt");
  const std::optional<base::WallTime> since = TimeOf(ready, "lastTransitionTime");
  if (started && since && *since > *started) pod.unready_since = since;
}

void ReadMetadata(const json& object, ObservedPod& pod) {
  const json& metadata = FieldOf(object, "metadata");
  const json& labels = FieldOf(metadata, "labels");
  pod.name = TextOf(metadata, "name");
  pod.name_space = TextOf(metadata, "namespace");
  pod.uid = TextOf(metadata, "uid");
  pod.owner_uid = TextOf(ControllerOf(object), "uid");
  pod.labelled = TextOf(labels, api::kJobUidLabel) == pod.owner_uid;
  pod.role = TextOf(labels, api::kRoleLabel);
  pod.index = NumberIn<int32_t>(TextOf(labels, api::kReplicaIndexLabel));
  const auto attempt = NumberIn<int32_t>(TextOf(labels, api::kAttemptLabel));
  pod.attempt = attempt > 0 && attempt <= plan::kMaxAttempt ? attempt : 0;
  pod.incarnation =
      NumberIn<int64_t>(TextOf(FieldOf(metadata, "annotations"), api::kIncarnationAnnotation));
  pod.created = TimeOf(metadata, "creationTimestamp").value_or(base::WallTime{});
  if (!FieldOf(metadata, "deletionTimestamp").is_null()) {
    pod.deletion_time = TimeOf(metadata, "deletionTimestamp").value_or(pod.created);
    const int64_t grace = IntegerOf(metadata, "deletionGracePeriodSeconds");
    pod.deletion_asked = *pod.deletion_time - std::chrono::seconds(std::clamp<int64_t>(
                                                  grace, 0, std::numeric_limits<int32_t>::max()));
    pod.forced = FieldOf(metadata, "deletionGracePeriodSeconds") == 0;
  }
}

// Without its grace, an object that is still there is held by finalizers alone.
void ReadFinalizers(const json& object, ObservedPod& pod) {
  if (!pod.forced) return;
  std::string names;
  for (const json& name : ListOf(FieldOf(object, "metadata"), "finalizers")) {
    if (name.is_string())
      absl::StrAppend(&names, names.empty() ? "" : ", ", name.get<std::string>());
  }
  pod.waiting_reason = "Finalizers";
  pod.waiting_message =
      absl::StrCat("held by finalizers (", names, "): who set them has to remove them");
}

void ReadRuntime(const json& state, ObservedPod& pod) {
  if (FieldOf(state, "running").is_object()) {
    pod.runtime = ObservedPod::Runtime::kRunning;
    return;
  }
  const json& terminated = FieldOf(state, "terminated");
  if (!terminated.is_object()) return;
  pod.runtime = ObservedPod::Runtime::kTerminated;
  pod.exit_code = SmallIntegerOf(terminated, "exitCode");
  pod.signal = SmallIntegerOf(terminated, "signal");
  pod.reason = TextOf(terminated, "reason");
  pod.message = TextOf(terminated, "message");
  pod.finished = TimeOf(terminated, "finishedAt");
}

void ReadPlace(const json& status, ObservedPod& pod) {
  const json& scheduled = ConditionOf(status, "PodScheduled");
  if (TextOf(scheduled, "status") == "True") pod.bound = TimeOf(scheduled, "lastTransitionTime");
}

// A pod that failed may have no container that says when; the last of its conditions does.
void ReadFailedBy(const json& status, ObservedPod& pod) {
  if (pod.phase != "Failed") return;
  for (const json& condition : ListOf(status, "conditions")) {
    const std::optional<base::WallTime> changed = TimeOf(condition, "lastTransitionTime");
    if (changed) pod.failed_by = std::max(pod.failed_by.value_or(*changed), *changed);
  }
}

// A pod that failed before its runtime container ran: the init container that ended badly.
void ReadInitFailure(const json& status, ObservedPod& pod) {
  if (pod.phase != "Failed" || pod.runtime == ObservedPod::Runtime::kTerminated) return;
  for (const json& container : ListOf(status, "initContainerStatuses")) {
    const json& terminated = FieldOf(FieldOf(container, "state"), "terminated");
    const int32_t code = SmallIntegerOf(terminated, "exitCode");
    if (code == 0) continue;
    pod.exit_code = code;
    pod.signal = SmallIntegerOf(terminated, "signal");
    pod.reason = TextOf(terminated, "reason");
    pod.message = absl::StrCat("init container ", TextOf(container, "name"), " ended with code ",
                               code, ": ", TextOf(terminated, "message"));
    pod.finished = TimeOf(terminated, "finishedAt");
    return;
  }
}

// What the kubelet or the node controller says about the pod as a whole (Evicted, NodeLost, ...)
// explains more than the state of its container, but never replaces a verdict (one line of JSON).
void ReadPodReason(const json& status, ObservedPod& pod) {
  const std::string reason = TextOf(status, "reason");
  if (reason.empty() || pod.succeeded()) return;
  pod.reason = reason;
  if (const std::string message = TextOf(status, "message");
      !message.empty() && !pod.message.starts_with('{')) {
    pod.message = message;
  }
}

// The container that cannot start; the two reasons that only mean "not yet" do not count.
bool ReadWaitingContainer(const json& containers, ObservedPod& pod) {
  for (const json& container : containers) {
    const json& waiting = FieldOf(FieldOf(container, "state"), "waiting");
    const std::string reason = TextOf(waiting, "reason");
    if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing") continue;
    pod.waiting_reason = reason;
    pod.waiting_message = TextOf(waiting, "message");
    if (pod.waiting_message.empty()) {
      pod.waiting_message = absl::StrCat("container ", TextOf(container, "name"), ": ", reason);
    }
    return true;
  }
  return false;
}

void ReadWaiting(const json& status, ObservedPod& pod) {
  if (pod.ended() || pod.runtime == ObservedPod::Runtime::kRunning) return;
  const json& scheduled = ConditionOf(status, "PodScheduled");
  const base::WallTime since = TimeOf(scheduled, "lastTransitionTime").value_or(pod.created);
  if (TextOf(scheduled, "status") == "False") {
    pod.waiting_reason = TextOf(scheduled, "reason");
    pod.waiting_message = TextOf(scheduled, "message");
    pod.waiting_since = since;
    return;
  }
  // A waiting state carries no time of its own; images are pulled from the binding on. Ephemeral
  // containers are somebody's debugging and are passed over.
  if (ReadWaitingContainer(ListOf(status, "initContainerStatuses"), pod) ||
      ReadWaitingContainer(ListOf(status, "containerStatuses"), pod)) {
    pod.waiting_since = since;
  }
}

}  // namespace

std::shared_ptr<const ObservedPod> ProjectPod(const json& object, bool with_requests) {
  auto pod = std::make_shared<ObservedPod>();
  ReadMetadata(object, *pod);
  const json& status = FieldOf(object, "status");
  pod->image = ImageOf(FieldOf(object, "spec"));
  pod->node = TextOf(FieldOf(object, "spec"), "nodeName");
  if (with_requests) pod->requests = children::RequestsOf(FieldOf(object, "spec"));
  pod->phase = TextOf(status, "phase");
  const json& ready = ConditionOf(status, "Ready");
  pod->ready = TextOf(ready, "status") == "True";
  pod->disrupted = TextOf(ConditionOf(status, "DisruptionTarget"), "status") == "True";
  const json& runtime = RuntimeStatusOf(status);
  ReadRuntime(FieldOf(runtime, "state"), *pod);
  ReadUnready(ready, runtime, *pod);
  ReadPlace(status, *pod);
  ReadFailedBy(status, *pod);
  ReadInitFailure(status, *pod);
  ReadPodReason(status, *pod);
  ReadWaiting(status, *pod);
  ReadFinalizers(object, *pod);
  return pod;
}

}  // namespace hetero::reconcile
