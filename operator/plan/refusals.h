#pragma once

#include <string>
#include <vector>

#include "operator/plan/pass.h"

namespace hetero::plan {

// Why no attempt can be begun with a spec that is valid by itself: what this version cannot do,
// what is wrong with the pod templates, and what this operator is not set up for. "path: reason and
// remedy" each; empty: nothing is in the way.
std::vector<std::string> Refusals(const Pass& pass);

}  // namespace hetero::plan
