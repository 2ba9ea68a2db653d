#pragma once

#include <memory>
#include <string>

#include "operator/plan/pass.h"

// The conditions of a Workload, and what the operator writes of them.
namespace hetero::plan {

// Types, as Kueue writes them (apis/kueue/v1beta2).
namespace workload_condition {
inline constexpr char kQuotaReserved[] = "QuotaReserved";
inline constexpr char kAdmitted[] = "Admitted";
inline constexpr char kEvicted[] = "Evicted";
inline constexpr char kRequeued[] = "Requeued";
inline constexpr char kPodsReady[] = "PodsReady";
inline constexpr char kFinished[] = "Finished";
}  // namespace workload_condition

// Empty where there is no such condition.
std::string MessageOf(const ObservedWorkload& workload, const char* type);

// Why the job lost what it ran on. Null: the Workload is not there.
std::string LossOf(const ObservedWorkload* workload);

// A condition with the time of this pass.
WorkloadCondition Stamped(const Pass& pass, const ObservedWorkload& workload, const char* type,
                          bool holds, std::string reason, std::string message);

// Gives the quota of an evicted Workload back, of which no pod is left, so that it is queued again.
UpdateWorkload Released(const Pass& pass, std::shared_ptr<const ObservedWorkload> workload);

DeleteChild Deleted(const ObservedWorkload& workload);

}  // namespace hetero::plan
