#include <filesystem>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "runtime/insight/report.h"

namespace hetero::insight {
namespace {

const char* Remedy(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return "; free some space there or choose another output folder";
    case absl::StatusCode::kPermissionDenied:
      return "; make the folder writable for this user or choose another output folder";
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
      return "; something is in the way there: move it or choose another output folder";
    default:
      return "";
  }
}

absl::Status Explained(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("report: ", status.message(), Remedy(status.code())));
}

}  // namespace

absl::Status WriteReport(
    const Report& report,
    const std::function<absl::Status(const std::string& file, const std::string& bytes)>& write) {
  absl::Status status = write("report.json", ToJson(report));
  if (status.ok()) status = write("report.html", ToHtml(report));
  return Explained(status);
}

absl::Status WriteReport(const Report& report, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return Explained(
        absl::ErrnoToStatus(error.value(), absl::StrCat("cannot create folder ", folder)));
  }
  return WriteReport(report, [&folder](const std::string& file, const std::string& bytes) {
    return base::WriteFileAtomically(folder + "/" + file, bytes);
  });
}

}  // namespace hetero::insight
