#include "runtime/program/load_manifest.h"

#include <iostream>

#include "base/atomic_file.h"
#include "runtime/program/commands.h"

namespace hetero::commands {
namespace {

template <typename Parse>
std::optional<api::HeteroTrainingJob> LoadBy(const std::string& file, const Parse& parse) {
  const absl::StatusOr<std::string> text = base::ReadFile(file);
  if (!text.ok()) {
    std::cerr << "cannot read the manifest: " << text.status().message() << "\n";
    return std::nullopt;
  }
  api::ManifestResult result = parse(*text);
  if (!result.errors.empty()) {
    PrintErrors(file, result.errors);
    return std::nullopt;
  }
  return std::move(result.job);
}

}  // namespace

std::optional<api::HeteroTrainingJob> LoadManifest(const std::string& file,
                                                   const std::vector<std::string>& overrides) {
  return LoadBy(file, [&](const std::string& text) { return api::ParseManifest(text, overrides); });
}

std::optional<api::HeteroTrainingJob> LoadJobDocument(const std::string& file) {
  return LoadBy(file, [](const std::string& text) { return api::ParseJobDocument(text); });
}

int PrintErrors(const std::string& file, const std::vector<api::FieldError>& errors) {
  std::cerr << file << ": " << errors.size() << (errors.size() == 1 ? " error\n" : " errors\n")
            << api::FormatErrors(errors);
  return kExitUsage;
}

}  // namespace hetero::commands
