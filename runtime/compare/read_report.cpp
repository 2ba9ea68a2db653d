#include "runtime/compare/read_report.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/atomic_file.h"
#include "base/status_macros.h"
#include "runtime/storage/object_uri.h"
#include "runtime/storage/store.h"

namespace hetero::compare {
namespace {

absl::Status TooLong(const std::string& place) {
  return absl::InvalidArgumentError(absl::StrCat(place, " is no report: it has more than ",
                                                 kMaxReportBytes >> 20, " MiB", kWhatToGive));
}

absl::StatusOr<std::string> TextOfStore(const std::string& uri, const storage::Stores& stores) {
  HETERO_ASSIGN_OR_RETURN(const storage::ObjectUri object, storage::ParseObjectUri(uri));
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::Store> store, stores.OpenRootOf(object));
  std::vector<uint8_t> bytes;
  const absl::Status read = store->ReadAll(object.name, kMaxReportBytes, &bytes).status();
  if (absl::IsOutOfRange(read)) return TooLong(uri);
  if (absl::IsNotFound(read)) {
    return absl::NotFoundError(absl::StrCat(uri, " does not exist", kWhatToGive));
  }
  HETERO_RETURN_IF_ERROR(read);
  return std::string(bytes.begin(), bytes.end());
}

absl::StatusOr<std::string> TextOfFile(const std::string& file) {
  absl::StatusOr<std::string> text = base::ReadFile(file, kMaxReportBytes);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat(file, " does not exist", kWhatToGive));
  }
  if (absl::IsOutOfRange(text.status())) return TooLong(file);
  if (!text.ok()) {
    return absl::Status(
        text.status().code(),
        absl::StrCat("cannot read the report: ", text.status().message(), kWhatToGive));
  }
  return text;
}

absl::StatusOr<std::string> FileOf(const std::string& place) {
  std::error_code error;
  if (!std::filesystem::is_directory(place, error)) return place;
  std::string file = (std::filesystem::path(place) / "report.json").string();
  if (std::filesystem::exists(file, error)) return file;
  return absl::NotFoundError(absl::StrCat(
      place, " has no report.json: its job still runs, or it is no output folder", kWhatToGive));
}

}  // namespace

absl::StatusOr<RunReport> ReadReport(const std::string& place, const storage::Stores& stores) {
  const std::string local(absl::StripPrefix(place, "file://"));
  std::string named;
  absl::StatusOr<std::string> text;
  if (absl::StrContains(local, "://")) {
    named = absl::EndsWith(local, ".json")
                ? local
                : absl::StrCat(absl::StripSuffix(local, "/"), "/report.json");
    text = TextOfStore(named, stores);
  } else {
    HETERO_ASSIGN_OR_RETURN(named, FileOf(local));
    text = TextOfFile(named);
  }
  if (!text.ok()) return text.status();
  HETERO_ASSIGN_OR_RETURN(RunReport run, ParseReport(*text, named));
  run.place = place;
  return run;
}

}  // namespace hetero::compare
