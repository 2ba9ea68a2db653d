#pragma once

#include "hetero/v1/membership.pb.h"

namespace hetero::process {

// What this process has cost since it began: CPU time, memory, requests to stores.
void SetProcessCosts(v1::Counters& counters);
// Of one of several members in a process, whose costs another one tells.
void ClearProcessCosts(v1::Counters& counters);

}  // namespace hetero::process
