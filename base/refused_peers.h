#pragma once

#include <string>

#include "base/refusal_throttle.h"

// What a process says about those whom it does not let in. Thread-safe. However many knock, there
// are few lines (refusal_throttle.h): `before` in a line counts those like it that got none.
namespace hetero::base {

// `who` by what they showed, `why` they were refused.
void ReportRefusedPeer(const std::string& who, const std::string& why);

// Whether a complaint of `kind` is worth a line, of all complaints that this process has.
RefusalThrottle::Decision AdmitComplaint(const std::string& kind);

}  // namespace hetero::base
