#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// Fails a job whose spec cannot run, naming every field. Pod templates are looked at once per
// generation.
void CheckSpec(Pass& pass);

}  // namespace hetero::plan
