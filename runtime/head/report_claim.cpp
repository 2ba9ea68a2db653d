#include "runtime/head/report_claim.h"

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/log.h"

namespace hetero::head {
namespace {

constexpr char kFile[] = ".head";

}  // namespace

ReportClaim::ReportClaim(ReportPlace* place, std::string job_uid, int64_t incarnation)
    : place_(place), job_uid_(std::move(job_uid)), incarnation_(incarnation) {}

std::string ReportClaim::Text() const { return absl::StrCat(job_uid_, " ", incarnation_, "\n"); }

absl::Status ReportClaim::Take() {
  if (place_ == nullptr || incarnation_ == 0) return absl::OkStatus();
  const absl::StatusOr<std::string> there = place_->Read(kFile);
  if (there.ok()) {
    const std::vector<std::string> words = absl::StrSplit(absl::StripAsciiWhitespace(*there), ' ');
    int64_t other = 0;
    if (words.size() == 2 && words[0] == job_uid_ && absl::SimpleAtoi(words[1], &other) &&
        other > incarnation_) {
      return absl::FailedPreconditionError(
          absl::StrCat(place_->name(), ": a newer head of this job (incarnation ", other,
                       ") writes its report there; this one is ", incarnation_));
    }
  }
  const absl::Status written = place_->Write(kFile, Text());
  if (!written.ok()) {
    log::Warning("the place of the report is not claimed", {{"error", written.message()}});
  }
  taken_ = written.ok();
  return absl::OkStatus();
}

absl::Status ReportClaim::Check() const {
  if (!taken_) return absl::OkStatus();
  const absl::StatusOr<std::string> there = place_->Read(kFile);
  if (!there.ok() || *there == Text()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      place_->name(), " is another head's by now (", absl::StripAsciiWhitespace(*there),
      "), and this one (", absl::StripAsciiWhitespace(Text()), ") was replaced"));
}

}  // namespace hetero::head
