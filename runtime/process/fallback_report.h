#pragma once

#include <string>

#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "hetero/v1/status.pb.h"
#include "runtime/insight/report.h"

namespace hetero::process {

// A job whose head can no longer say what it came to.
struct HeadlessEnd {
  api::HeteroTrainingJob job;
  std::string run;           // as the head's HETERO_JOB_UID
  std::string history_file;  // that the head left; may be missing or of anything
  base::WallTime created;
  int32_t attempt = 1;
  v1::JobStatus::State state = v1::JobStatus::FAILED;
  std::string message;
};

// The report of what is known: attempts, faults, workers and curves as the head last wrote them
// down.
insight::Report MakeFallbackReport(const HeadlessEnd& end, base::Clock& clock);

}  // namespace hetero::process
