#pragma once

#include "absl/status/status.h"

namespace hetero::feed {

// In a handler: the exception as the error of what was being prepared. kResourceExhausted for no
// memory: no bad sample, because another process may have it, and a batch must not depend on that.
// kInternal, with its words, for anything else: what a plugin or a library throws is no end of the
// process.
absl::Status StatusOfThrown();

}  // namespace hetero::feed
