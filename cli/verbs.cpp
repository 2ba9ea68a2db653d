#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/render.h"
#include "cli/terminal.h"
#include "operator/api/manifest.h"

namespace hetero::cli {

using nlohmann::json;

absl::StatusOr<int> SetSuspend(Cluster& cluster, const Options& options, bool suspend) {
  const kube::ObjectKey key{cluster.name_space(), options.job};
  const json patch = {{"spec", {{"runPolicy", {{"suspend", suspend}}}}}};
  const auto patched = cluster.client().Patch(kJobs, key, kube::PatchType::kMerge, patch);
  if (!patched.ok()) return Explain(patched.status(), "patch", key);
  Print(absl::StrCat(
      "heterotrainingjob ", key.ToString(),
      suspend ? " will be suspended; it goes on from its last checkpoint\n" : " goes on\n"));
  return 0;
}

absl::StatusOr<int> Report(Cluster& cluster, const Options& options) {
  const auto object = cluster.Job(options.job);
  if (!object.ok()) return object.status();
  const auto view = ViewOf(*object);
  if (!view.ok()) return view.status();
  if (!view->status.finished()) {
    return absl::FailedPreconditionError(
        absl::StrCat("heterotrainingjob ", view->name_space, "/", view->name, " is still ",
                     view->state(), "; kubectl hetero status ", view->name, " waits for its end"));
  }
  if (options.output == OutputFormat::kText) {
    Print(RenderReport(*view));
    return 0;
  }
  const json& status = (*object)["status"];
  const json result = status.is_object() ? status.value("result", json::object()) : json::object();
  Print(result.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  return 0;
}

absl::StatusOr<int> Validate(const Options& options, base::Clock& clock) {
  std::string text;
  if (options.file == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    std::ifstream file(options.file);
    if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", options.file));
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  const api::ManifestResult parsed = api::ParseManifest(text);
  if (!parsed.errors.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.file, " is refused:\n", api::FormatErrors(parsed.errors)));
  }
  if (options.server) {
    auto cluster = Cluster::Connect(options, clock);
    if (!cluster.ok()) return cluster.status();
    std::string name_space = parsed.job.metadata.name_space;
    if (name_space.empty()) name_space = (*cluster)->name_space();
    const absl::Status accepted = (*cluster)->DryRun(name_space, text);
    if (!accepted.ok()) {
      return absl::Status(accepted.code(),
                          absl::StrCat(options.file, " is refused by the API server: ",
                                       std::string(accepted.message())));
    }
  }
  Print(absl::StrCat(options.file, ": heterotrainingjob ", parsed.job.metadata.name,
                     " is accepted\n"));
  return 0;
}

}  // namespace hetero::cli
