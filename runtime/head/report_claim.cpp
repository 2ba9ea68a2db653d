#include "runtime/head/report_claim.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/atomic_file.h"
#include "base/log.h"

namespace hetero::head {

ReportClaim::ReportClaim(std::string folder, std::string job_uid, int64_t incarnation)
    : folder_(std::move(folder)), job_uid_(std::move(job_uid)), incarnation_(incarnation) {}

std::string ReportClaim::Text() const { return absl::StrCat(job_uid_, " ", incarnation_, "\n"); }

absl::Status ReportClaim::Take() {
  if (folder_.empty() || incarnation_ == 0) return absl::OkStatus();
  const absl::StatusOr<std::string> there = base::ReadFile(File());
  if (there.ok()) {
    const std::vector<std::string> words = absl::StrSplit(absl::StripAsciiWhitespace(*there), ' ');
    int64_t other = 0;
    if (words.size() == 2 && words[0] == job_uid_ && absl::SimpleAtoi(words[1], &other) &&
        other > incarnation_) {
      return absl::FailedPreconditionError(
          absl::StrCat(folder_, ": a newer head of this job (incarnation ", other,
                       ") writes its report there; this one is ", incarnation_));
    }
  }
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  const absl::Status written = base::WriteFileAtomically(File(), Text());
  if (!written.ok()) {
    log::Warning("the output folder is not claimed", {{"error", written.message()}});
  }
  taken_ = written.ok();
  return absl::OkStatus();
}

absl::Status ReportClaim::Check() const {
  if (!taken_) return absl::OkStatus();
  const absl::StatusOr<std::string> there = base::ReadFile(File());
  if (!there.ok() || *there == Text()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(folder_, " is another head's by now (", absl::StripAsciiWhitespace(*there),
                   "), and this one (", absl::StripAsciiWhitespace(Text()), ") was replaced"));
}

}  // namespace hetero::head
