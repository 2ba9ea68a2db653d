#pragma once

#include <memory>
#include <string>

#include "operator/plan/observed.h"

// Jobs as the operator's store has them, for the page of all jobs.
namespace hetero::jobs_page {

inline const base::WallTime kCreated{std::chrono::seconds(1'767'225'600)};  // 2026-01-01T00:00:00Z

// Trains: step 400 of 1,000, without a price and a finding.
plan::ObservedJob TrainingJob(const std::string& name_space, const std::string& name);
// The condition becomes True, and the first of all.
void SetTrue(plan::ObservedJob& job, api::ConditionType type, const std::string& reason,
             const std::string& message);
api::JobFinding InputBound();
// Job `number` of many, with all that a job may have: every tenth has failed, waits in a queue, is
// starved, is new, or is over.
plan::ObservedJob PlayedJob(int number);

}  // namespace hetero::jobs_page
