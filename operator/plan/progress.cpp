#include "operator/plan/progress.h"

namespace hetero::plan {

void CopyProgress(Pass& pass) {
  const HeadReport* report = pass.Report();
  if (report != nullptr && report->progress) pass.status.progress = report->progress;
}

}  // namespace hetero::plan
