#include "runtime/program/load_manifest.h"

#include <iostream>

#include "base/atomic_file.h"
#include "runtime/program/commands.h"

namespace hetero::commands {

std::optional<api::HeteroTrainingJob> LoadManifest(const std::string& file,
                                                   const std::vector<std::string>& overrides) {
  const absl::StatusOr<std::string> text = base::ReadFile(file);
  if (!text.ok()) {
    std::cerr << "cannot read the manifest: " << text.status().message() << "\n";
    return std::nullopt;
  }
  api::ManifestResult result = api::ParseManifest(*text, overrides);
  if (!result.errors.empty()) {
    PrintErrors(file, result.errors);
    return std::nullopt;
  }
  return std::move(result.job);
}

int PrintErrors(const std::string& file, const std::vector<api::FieldError>& errors) {
  std::cerr << file << ": " << errors.size() << (errors.size() == 1 ? " error\n" : " errors\n")
            << api::FormatErrors(errors);
  return kExitUsage;
}

}  // namespace hetero::commands
