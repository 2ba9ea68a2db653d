#include "base/non_dumpable.h"

#include <sys/prctl.h>

namespace hetero::base {

void MakeNonDumpable() { prctl(PR_SET_DUMPABLE, 0); }

}  // namespace hetero::base
