#pragma once

#include <cstdint>
#include <vector>

#include "operator/plan/pass.h"

namespace hetero::plan {

// By which a head says which notices it has; 0 of none.
uint64_t FingerprintOf(const std::vector<MemberNotice>& notices);

// Tells the head which members are on nodes that are about to go, whenever that is not what it has:
// it has the training saved before they go.
void TellNotices(Pass& pass);

}  // namespace hetero::plan
