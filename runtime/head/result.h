#pragma once

#include "hetero/v1/status.pb.h"
#include "runtime/insight/report.h"

namespace hetero::head {

// The numbers of the report that status.result has too; reportURI stays empty, as in BuildStatus.
v1::Result BuildResult(const insight::Report& report);

}  // namespace hetero::head
