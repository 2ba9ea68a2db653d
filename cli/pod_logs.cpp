#include "cli/pod_logs.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/labels.h"
#include "base/json_access.h"

namespace hetero::cli {
namespace {

using base::FieldOf;
using base::ListOf;
using base::TextOf;
using nlohmann::json;

constexpr size_t kMostPods = 200;  // one connection and thread each

// In the order of the manifest.
std::vector<std::string> RolesOf(const json& job) {
  std::vector<std::string> roles;
  for (const json& role : ListOf(FieldOf(job, "spec"), "roles")) {
    roles.push_back(TextOf(role, "name"));
  }
  return roles;
}

// Messages of the transport and the API server carry the whole call, which says nothing here.
std::string WithoutCall(const absl::Status& status, const std::string& path) {
  std::string text(status.message());
  const std::string call = "GET " + path;
  if (text.starts_with(call)) text.erase(0, call.size());
  text.erase(0, text.find_first_not_of(": "));
  return text;
}

// Of the role, digits of the index, index: so that cpu-2 comes before cpu-10.
using Place = std::tuple<size_t, size_t, std::string>;

}  // namespace

absl::StatusOr<std::vector<LogPod>> FindPods(Cluster& cluster, const Options& options,
                                             const json& job) {
  const std::vector<std::string> roles = RolesOf(job);
  if (!options.role.empty() && std::find(roles.begin(), roles.end(), options.role) == roles.end()) {
    return absl::InvalidArgumentError(absl::StrCat("heterotrainingjob ", cluster.name_space(), "/",
                                                   options.job, " has no role ", options.role,
                                                   "; it has ", absl::StrJoin(roles, ", ")));
  }
  std::string selector =
      api::kJobUidLabel + std::string("=") + TextOf(FieldOf(job, "metadata"), "uid");
  if (!options.role.empty()) absl::StrAppend(&selector, ",", api::kRoleLabel, "=", options.role);
  if (options.index >= 0) {
    absl::StrAppend(&selector, ",", api::kReplicaIndexLabel, "=", options.index);
  }
  const auto pods = cluster.client().List(kube::kPods, cluster.name_space(),
                                          {.label_selector = selector, .limit = kMostPods});
  if (!pods.ok()) {
    return Explain(pods.status(), "list the pods of", {cluster.name_space(), options.job});
  }
  if (!pods->continue_token.empty()) {
    return absl::ResourceExhaustedError(absl::StrCat(cluster.name_space(), "/", options.job,
                                                     " has more than ", kMostPods,
                                                     " pods; choose with --role and --index"));
  }
  std::vector<std::pair<Place, LogPod>> placed;
  for (const json& pod : pods->items) {
    const json& metadata = FieldOf(pod, "metadata");
    const json& labels = FieldOf(metadata, "labels");
    const std::string role = TextOf(labels, api::kRoleLabel);
    const std::string index = TextOf(labels, api::kReplicaIndexLabel);
    const size_t rank = std::find(roles.begin(), roles.end(), role) - roles.begin();
    placed.push_back(
        {{rank, index.size(), index},
         {TextOf(metadata, "name"), TextOf(metadata, "uid"), absl::StrCat(role, "-", index)}});
  }
  std::sort(placed.begin(), placed.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<LogPod> found;
  for (auto& [place, pod] : placed) found.push_back(std::move(pod));
  return found;
}

absl::Status ReadLog(Cluster& cluster, const LogPod& pod, bool follow,
                     const std::function<void(std::string_view line)>& on_line,
                     std::stop_token stop) {
  const std::string path =
      absl::StrCat("/api/v1/namespaces/", cluster.name_space(), "/pods/", pod.name,
                   "/log?container=runtime", follow ? "&follow=true" : "");
  const absl::Status ended = cluster.client().GetLines(
      path,
      [&](std::string_view line) {
        on_line(line);
        return true;
      },
      std::move(stop));
  if (ended.ok()) return ended;
  return absl::Status(ended.code(), WithoutCall(ended, path));
}

}  // namespace hetero::cli
