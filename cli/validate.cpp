#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/manifest.h"
#include "api/unsupported_fields.h"
#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "operator/children/children.h"

namespace hetero::cli {
namespace {

absl::StatusOr<std::string> ReadManifest(const std::string& file) {
  if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    return absl::InvalidArgumentError(file + " is a folder; name a manifest in it");
  }
  std::ifstream stream(file);
  if (!stream) {
    return absl::NotFoundError(absl::StrCat("cannot read ", file, ": ", std::strerror(errno)));
  }
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

absl::Status AskServer(const Options& options, base::Clock& clock, const std::string& text,
                       const api::Metadata& metadata) {
  HETERO_ASSIGN_OR_RETURN(const auto cluster, Cluster::Connect(options, clock));
  std::string name_space = metadata.name_space;
  if (name_space.empty()) name_space = cluster->name_space();
  if (!options.name_space.empty() && name_space != options.name_space) {
    return absl::InvalidArgumentError(absl::StrCat("the manifest names namespace ", name_space,
                                                   ", -n names ", options.name_space,
                                                   "; make them agree or leave -n out"));
  }
  return cluster->DryRun({name_space, metadata.name}, text);
}

// What the operator refuses by the manifest alone.
std::vector<api::FieldError> OperatorRefusals(const api::HeteroTrainingJob& job) {
  std::vector<api::FieldError> refusals = api::UnsupportedFields(job);
  for (const children::TemplateError& error : children::CheckTemplates(job)) {
    refusals.push_back({.path = error.path, .reason = error.reason});
  }
  return refusals;
}

}  // namespace

absl::StatusOr<int> Validate(const Options& options, base::Clock& clock) {
  HETERO_ASSIGN_OR_RETURN(const std::string text, ReadManifest(options.file));
  const std::string name = options.file == "-" ? "standard input" : options.file;
  const api::ManifestResult parsed = api::ParseManifest(text);
  const std::vector<api::FieldError> refusals =
      parsed.errors.empty() ? OperatorRefusals(parsed.job) : parsed.errors;
  if (!refusals.empty()) {
    std::string errors = api::FormatErrors(refusals);
    errors.erase(errors.find_last_not_of('\n') + 1);
    return absl::InvalidArgumentError(absl::StrCat(name, " is refused:\n", errors));
  }
  if (options.server) {
    const absl::Status accepted = AskServer(options, clock, text, parsed.job.metadata);
    if (!accepted.ok()) {
      return absl::Status(accepted.code(),
                          absl::StrCat(name, ": ", std::string(accepted.message())));
    }
  }
  Print(absl::StrCat(name, ": heterotrainingjob ", parsed.job.metadata.name, " is valid",
                     options.server ? ", and the API server would accept it" : "", "\n"));
  return 0;
}

}  // namespace hetero::cli
