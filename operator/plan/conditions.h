#pragma once

#include <string>

#include "operator/plan/pass.h"

// How the steps write conditions. Those of all ConditionTypes are always there, in that order; the
// time of the last transition moves only when True, False or Unknown changes.
namespace hetero::plan {

// Adds the conditions that are missing: Unknown, or what is known of a job that has just been seen.
void BeginConditions(Pass& pass);

void SetCondition(Pass& pass, api::ConditionType type, api::ConditionStatus value,
                  std::string reason, std::string message = {});

// Nothing of the job runs, and that is why.
void DescribeHalt(Pass& pass, const std::string& reason);

// Its time of transition is now, whatever it was before.
void RestampCondition(Pass& pass, api::ConditionType type);

// The condition being made; present after BeginConditions.
const api::Condition& ConditionOf(const Pass& pass, api::ConditionType type);

// The condition as read; null before the first pass.
bool WasTrue(const Pass& pass, api::ConditionType type);

// Stamps the generation that this pass has looked at.
void StampGeneration(Pass& pass);

}  // namespace hetero::plan
