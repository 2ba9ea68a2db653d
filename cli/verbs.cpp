#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/job_view.h"
#include "cli/terminal.h"

namespace hetero::cli {

using nlohmann::json;

absl::StatusOr<int> SetSuspend(Cluster& cluster, const Options& options, bool suspend) {
  const kube::ObjectKey key{cluster.name_space(), options.job};
  const auto object = cluster.Job(options.job);
  if (!object.ok()) return object.status();
  const auto view = ViewOf(*object);
  if (!view.ok()) return view.status();
  const std::string name = "heterotrainingjob " + key.ToString();
  if (view->status.finished()) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " has ended (", view->state(), "); kubectl hetero report ", view->name,
                     " says how. To train again, create a new job"));
  }
  if (view->suspend == suspend) {
    Print(name + (suspend ? " is suspended already\n" : " is not suspended\n"));
    return 0;
  }
  const json patch = {{"spec", {{"runPolicy", {{"suspend", suspend}}}}}};
  const auto patched = cluster.client().Patch(kJobs, key, kube::PatchType::kMerge, patch);
  if (!patched.ok()) return Explain(patched.status(), "patch", key);
  Print(name + (suspend ? " will be suspended: its pods go, its last checkpoint stays; kubectl "
                          "hetero resume " +
                              view->name + " lets it go on\n"
                        : " goes on; kubectl hetero status " + view->name + " shows how\n"));
  return 0;
}

}  // namespace hetero::cli
