#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// Creates what is missing: first the head's Service alone, because its address goes into the pods;
// then the authority with the ConfigMap and the NetworkPolicy; then all missing pods of all roles
// at once. A pod is missing only when no pod of its name is there, of whatever attempt.
void CreateChildren(Pass& pass);

// Conditions PodsCreated and Restarting. A pod that is replaced does not take PodsCreated back; one
// that cannot be created does.
void DescribeChildren(Pass& pass);

}  // namespace hetero::plan
