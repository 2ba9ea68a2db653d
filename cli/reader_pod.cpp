#include "cli/reader_pod.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "api/job_resource.h"
#include "api/role_type.h"
#include "base/json_access.h"
#include "base/version.h"

namespace hetero::cli {
namespace {

using base::ListOf;
using base::ObjectOf;
using base::TextOf;
using nlohmann::json;

constexpr int kUser = 65532;  // as in the job's own pods

// The template's pod spec and the container in it that ran the head.
std::pair<json, json> HeadTemplate(const json& object) {
  for (const json& role : ListOf(ObjectOf(object, "spec"), "roles")) {
    if (TextOf(role, "type") != api::kHeadType) continue;
    const json spec = ObjectOf(ObjectOf(role, "template"), "spec");
    for (const json& container : ListOf(spec, "containers")) {
      if (TextOf(container, "name") == api::kRuntimeContainer) return {spec, container};
    }
    return {spec, json::object()};
  }
  return {json::object(), json::object()};
}

bool Holds(std::string mount, const std::string& folder) {
  if (mount.ends_with('/')) mount.pop_back();
  return folder == mount || folder.starts_with(mount + "/");
}

// A volume whose content is nobody else's and went with the head.
bool GoesWithPod(const json& volume) {
  return volume.contains("emptyDir") || volume.contains("ephemeral");
}

absl::Status NothingMounted(const std::string& folder, const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat("the report cannot be read: ", why, ", so ", folder,
                   " was inside the head's container and went with it; mount a persistent volume "
                   "there in the template of the role of type Head"));
}

json Security(const json& spec) {
  json security = ObjectOf(spec, "securityContext");
  const auto set = [&security](const char* key, json value) {
    if (!security.contains(key)) security[key] = std::move(value);
  };
  if (security.value("runAsUser", json()) != 0) set("runAsNonRoot", true);
  set("runAsUser", kUser);
  set("runAsGroup", kUser);
  set("fsGroup", kUser);
  set("fsGroupChangePolicy", "OnRootMismatch");
  set("seccompProfile", {{"type", "RuntimeDefault"}});
  return security;
}

json Reader(const char* name, const std::string& image, json arguments, const json& mounts) {
  return {{"name", name},
          {"image", image},
          {"command", {"hetero-runtime"}},
          {"args", std::move(arguments)},
          {"volumeMounts", mounts},
          {"resources",
           {{"requests", {{"cpu", "10m"}, {"memory", "32Mi"}}}, {"limits", {{"memory", "256Mi"}}}}},
          {"securityContext",
           {{"allowPrivilegeEscalation", false},
            {"readOnlyRootFilesystem", true},
            {"capabilities", {{"drop", {"ALL"}}}}}}};
}

}  // namespace

absl::StatusOr<json> ReaderPod(const json& object, const std::string& name,
                               const std::string& folder, const std::string& image) {
  const auto [spec, head] = HeadTemplate(object);
  json volumes = json::array(), mounts = json::array();
  for (const json& mount : ListOf(head, "volumeMounts")) {
    if (!Holds(TextOf(mount, "mountPath"), folder)) continue;
    for (const json& volume : ListOf(spec, "volumes")) {
      const std::string volume_name = TextOf(volume, "name");
      if (volume_name != TextOf(mount, "name")) continue;
      if (GoesWithPod(volume)) {
        return NothingMounted(folder, absl::StrCat("volume ", volume_name, " lives in the pod"));
      }
      volumes.push_back(volume);
      mounts.push_back(mount);
      mounts.back()["readOnly"] = true;
    }
  }
  if (mounts.empty()) return NothingMounted(folder, "the head has no volume mounted there");
  std::string program = image.empty() ? TextOf(head, "image") : image;
  if (program.empty()) program = absl::StrCat("hetero-runtime:", base::kVersion);

  json pod_spec = {{"restartPolicy", "Never"},
                   {"activeDeadlineSeconds", kReaderDeadlineSeconds},
                   {"terminationGracePeriodSeconds", 1},
                   {"automountServiceAccountToken", false},
                   {"enableServiceLinks", false},
                   {"securityContext", Security(spec)},
                   {"volumes", std::move(volumes)},
                   {"containers",
                    {Reader(kJsonReader, program, {"report", folder}, mounts),
                     Reader(kHtmlReader, program, {"report", folder, "--html"}, mounts)}}};
  for (const char* key : {"imagePullSecrets", "nodeSelector", "tolerations", "affinity",
                          "serviceAccountName", "runtimeClassName"}) {
    if (spec.contains(key)) pod_spec[key] = spec[key];
  }
  const json metadata = ObjectOf(object, "metadata");
  return json{{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata",
               {{"name", name},
                {"namespace", TextOf(metadata, "namespace")},
                {"labels",
                 {{"app.kubernetes.io/name", "hetero-report-reader"},
                  {"app.kubernetes.io/part-of", "hetero"}}},
                {"ownerReferences",
                 {{{"apiVersion", TextOf(object, "apiVersion")},
                   {"kind", TextOf(object, "kind")},
                   {"name", TextOf(metadata, "name")},
                   {"uid", TextOf(metadata, "uid")}}}}}},
              {"spec", std::move(pod_spec)}};
}

}  // namespace hetero::cli
