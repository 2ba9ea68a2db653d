#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cli/options.h"
#include "operator/kube/client.h"

// The API server, as the caller's kubeconfig names it and with the caller's rights.
namespace hetero::cli {

extern const kube::Resource kJobs;

class Cluster {
 public:
  static absl::StatusOr<std::unique_ptr<Cluster>> Connect(const Options& options,
                                                          base::Clock& clock);

  kube::Client& client() { return *client_; }
  // With less patience: for what may be missing.
  kube::Client& aside() { return *aside_; }
  const std::string& name_space() const { return name_space_; }
  // Errors name the job, its namespace and what to do; of a name that is not there the nearest.
  absl::StatusOr<nlohmann::json> Job(const std::string& name);
  // Whether the API server would create this manifest (YAML or JSON): OK, or its own message. An
  // existing job of that name is not an error.
  absl::Status DryRun(const kube::ObjectKey& job, const std::string& manifest);

 private:
  // A name in the namespace like `name`; empty: there is none, or none may be listed.
  std::string Nearest(const std::string& name);

  std::string name_space_;
  base::Duration timeout_ = std::chrono::seconds(30);
  std::unique_ptr<kube::Transport> transport_;
  metrics::Registry registry_;
  std::unique_ptr<kube::Client> client_;
  std::unique_ptr<kube::Client> aside_;
};

// `status`, got from an attempt to `verb` the job (without a name: the jobs of its namespace, or of
// all), in words for a person: what is wrong and what to do about it. Its code stays.
absl::Status Explain(const absl::Status& status, const std::string& verb,
                     const kube::ObjectKey& job);

}  // namespace hetero::cli
