#pragma once

#include "tests/integration/findings/cause.h"

// Causes that lie in the user's own program.
namespace hetero::testing {

Cause ALongStart();
Cause ABlockedScript();
Cause ALockedInterpreter();

}  // namespace hetero::testing
