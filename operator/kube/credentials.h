#pragma once

#include <memory>
#include <optional>
#include <string>

#include "operator/kube/cluster_access.h"
#include "operator/kube/exec_plugin.h"

namespace hetero::kube {

// A text that stands in the configuration or in a file; the file wins over nothing, the text over
// the file.
struct TextOrFile {
  std::string text;
  std::string file;
  bool empty() const { return text.empty() && file.empty(); }
};

absl::StatusOr<std::string> ReadFile(const std::string& file);
absl::StatusOr<std::string> Resolve(const TextOrFile& source);

// Files are read again each minute; what was read last serves on while they cannot be.
std::shared_ptr<CredentialSource> FileCredentials(base::Clock& clock, TextOrFile token,
                                                  TextOrFile certificate, TextOrFile key);
// Runs the plugin when its credential has less than 10 s left. `where` starts its errors.
std::shared_ptr<CredentialSource> ExecCredentials(base::Clock& clock, ExecPlugin plugin,
                                                  std::string where);

}  // namespace hetero::kube
