#pragma once

#include <string>
#include <vector>

#include "operator/plan/pass.h"

namespace hetero::plan {

// A member that the head does not know, and why.
struct MissingMember {
  enum class Cause { kPullFailed, kUnschedulable, kOther, kNotRegistered };  // the worst first
  Cause cause = Cause::kOther;
  std::string text;  // "vit-gpu-1: Unschedulable: 0/3 nodes are available"
};
// Head first among equals; empty when nothing is missing.
std::vector<MissingMember> MissingMembers(const Pass& pass);
// Up to five, then how many more: "a; b; and 3 more". "none" for none.
std::string ListMissing(const std::vector<MissingMember>& missing);

// Condition Registered: True once the head, every GPU worker and minReplicas of each CPU role have
// registered; stays so for the attempt.
void DescribeRegistration(Pass& pass);

}  // namespace hetero::plan
