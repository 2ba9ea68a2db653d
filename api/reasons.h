#pragma once

// Why a condition is as it is, why an event was recorded, why a pod is counted as failed: the
// words that people and their tools match. docs/kubernetes.md says what each means;
// tests/unit/api/documented_names_test.cpp compares it with this file. Types of conditions are an
// enum of job_status.h.
namespace hetero::api {

// `reason` of a condition.
namespace reason {

// PodsCreated.
inline constexpr char kAllCreated[] = "AllCreated";
inline constexpr char kCreatingPods[] = "CreatingPods";  // of Registered too
inline constexpr char kCreateFailed[] = "CreateFailed";
inline constexpr char kQuotaExceeded[] = "QuotaExceeded";
inline constexpr char kNameConflict[] = "NameConflict";
inline constexpr char kTooManyPods[] = "TooManyPods";
inline constexpr char kGangMissing[] = "GangMissing";

// Registered.
inline constexpr char kAllRegistered[] = "AllRegistered";
inline constexpr char kWaitingForPods[] = "WaitingForPods";
inline constexpr char kUnschedulable[] = "Unschedulable";
inline constexpr char kImagePullFailed[] = "ImagePullFailed";

// Running and Stalled.
inline constexpr char kNotStarted[] = "NotStarted";
inline constexpr char kTrainingStarted[] = "TrainingStarted";
inline constexpr char kRestarting[] = "Restarting";  // of PodsCreated too
inline constexpr char kProgressing[] = "Progressing";
inline constexpr char kNoStep[] = "NoStep";

// Restarting.
inline constexpr char kFirstAttempt[] = "FirstAttempt";
inline constexpr char kPodFailed[] = "PodFailed";
inline constexpr char kNoTrainerLeft[] = "NoTrainerLeft";
inline constexpr char kStopped[] = "Stopped";
inline constexpr char kStalled[] = "Stalled";
inline constexpr char kHeadAddressChanged[] = "HeadAddressChanged";
inline constexpr char kTrustLost[] = "TrustLost";
inline constexpr char kCompleted[] = "Completed";

// Suspended.
inline constexpr char kNotSuspended[] = "NotSuspended";
inline constexpr char kSuspending[] = "Suspending";
inline constexpr char kSuspended[] = "Suspended";  // of all that does not go on meanwhile too
inline constexpr char kResumed[] = "Resumed";
inline constexpr char kSpecChanged[] = "SpecChanged";

// Queued.
inline constexpr char kNotQueued[] = "NotQueued";
inline constexpr char kPending[] = "Pending";
inline constexpr char kInadmissible[] = "Inadmissible";
inline constexpr char kEvicted[] = "Evicted";
inline constexpr char kDeactivated[] = "Deactivated";
inline constexpr char kKueueMissing[] = "KueueMissing";
inline constexpr char kAdmitted[] = "Admitted";
inline constexpr char kWorkloadMissing[] = "WorkloadMissing";

// CheckpointFailing.
inline constexpr char kNoneFailed[] = "NoneFailed";
inline constexpr char kWriteFailed[] = "WriteFailed";
inline constexpr char kRecovered[] = "Recovered";

// SpecIgnored.
inline constexpr char kFollowed[] = "Followed";
inline constexpr char kUnknownFields[] = "UnknownFields";

// Succeeded and Failed, which share one when the job is over.
inline constexpr char kNotFinished[] = "NotFinished";
inline constexpr char kTrainingFinished[] = "TrainingFinished";
inline constexpr char kTrainingFailed[] = "TrainingFailed";
inline constexpr char kMaxRestartsExceeded[] = "MaxRestartsExceeded";
inline constexpr char kRuleMatched[] = "RuleMatched";
inline constexpr char kStartupDeadlineExceeded[] = "StartupDeadlineExceeded";
inline constexpr char kDeadlineExceeded[] = "DeadlineExceeded";
inline constexpr char kMaxWaitExceeded[] = "MaxWaitExceeded";
inline constexpr char kBudgetExceeded[] = "BudgetExceeded";
inline constexpr char kInvalidSpec[] = "InvalidSpec";  // of SpecIgnored too
inline constexpr char kFinished[] = "Finished";        // of all other conditions of such a job

}  // namespace reason

// `reason` of an event about the job.
namespace event {

inline constexpr char kJobStarted[] = "JobStarted";
inline constexpr char kPodFailed[] = "PodFailed";
inline constexpr char kPodEnded[] = "PodEnded";
inline constexpr char kScriptFailed[] = "ScriptFailed";
inline constexpr char kRestarting[] = "Restarting";
inline constexpr char kStalled[] = "Stalled";
inline constexpr char kNodeLeaving[] = "NodeLeaving";
inline constexpr char kScaled[] = "Scaled";
inline constexpr char kCheckpointFailed[] = "CheckpointFailed";
inline constexpr char kCheckpointWritten[] = "CheckpointWritten";
inline constexpr char kFinding[] = "Finding";
inline constexpr char kSuspended[] = "Suspended";
inline constexpr char kResumed[] = "Resumed";
inline constexpr char kQueued[] = "Queued";
inline constexpr char kNotQueued[] = "NotQueued";
inline constexpr char kAdmitted[] = "Admitted";
inline constexpr char kEvicted[] = "Evicted";
inline constexpr char kJobSucceeded[] = "JobSucceeded";
inline constexpr char kJobFailed[] = "JobFailed";
inline constexpr char kInvalidSpec[] = "InvalidSpec";
inline constexpr char kSpecIgnored[] = "SpecIgnored";

}  // namespace event

// `reason` of status.firstFailure where the pod itself names none: Kubernetes' own words
// (OOMKilled, Evicted, ...) stand there otherwise.
namespace failure {

inline constexpr char kError[] = "Error";
inline constexpr char kDisruption[] = "Disruption";
inline constexpr char kNodeLost[] = "NodeLost";
inline constexpr char kLost[] = "Lost";

}  // namespace failure

}  // namespace hetero::api
