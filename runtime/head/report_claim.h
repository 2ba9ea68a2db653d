#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/head/report_place.h"

namespace hetero::head {

// Which head may write the report into its place: the newest of the job. A head that was cut
// off from its cluster and comes back when another has taken its place must not write over that
// one's report. The claim is a small file of the place itself, so whoever can write there sees it.
// Not thread-safe.
class ReportClaim {
 public:
  // No place or an incarnation of 0 (not known) claims nothing and holds always. `place` outlives
  // it.
  ReportClaim(ReportPlace* place, std::string job_uid, int64_t incarnation);

  // Writes the claim. kFailedPrecondition: a newer head of
  // this job has one. A claim that cannot be written is only logged: the report will say why.
  absl::Status Take();
  // kFailedPrecondition: another head has taken the place since. One that somebody removed holds.
  absl::Status Check() const;

 private:
  std::string Text() const;

  ReportPlace* const place_;
  const std::string job_uid_;
  const int64_t incarnation_;
  bool taken_ = false;
};

}  // namespace hetero::head
