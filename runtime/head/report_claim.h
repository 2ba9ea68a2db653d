#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace hetero::head {

// Which head may write the report into an output folder: the newest of the job. A head that was cut
// off from its cluster and comes back when another has taken its place must not write over that
// one's report. The claim is a small file of the folder itself, so whoever can write there sees it.
// Not thread-safe.
class ReportClaim {
 public:
  // An empty folder or an incarnation of 0 (not known) claims nothing and holds always.
  ReportClaim(std::string folder, std::string job_uid, int64_t incarnation);

  // Writes the claim; the folder is made when it is missing. kFailedPrecondition: a newer head of
  // this job has one. A claim that cannot be written is only logged: the report will say why.
  absl::Status Take();
  // kFailedPrecondition: another head has taken the folder since. One that somebody removed holds.
  absl::Status Check() const;

 private:
  std::string File() const { return folder_ + "/.head"; }
  std::string Text() const;

  const std::string folder_;
  const std::string job_uid_;
  const int64_t incarnation_;
  bool taken_ = false;
};

}  // namespace hetero::head
