#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "api/job_resource.h"
#include "api/labels.h"
#include "api/process_environment.h"
#include "base/json_access.h"
#include "operator/children/children.h"
#include "operator/children/environment.h"
#include "operator/children/runtime_container.h"
#include "operator/children/script_pod.h"
#include "operator/children/template_json.h"

namespace hetero::children {
namespace {

using base::TextOf;
using nlohmann::json;

// The findings of one template.
class Checker {
 public:
  Checker(const api::Role& role, bool own_image, std::string path,
          std::vector<TemplateError>& errors)
      : role_(role), own_image_(own_image), path_(std::move(path)), errors_(errors) {}

  void Check() {
    if (own_image_ && !NamesRuntimeImage(role_)) {
      Add("",
          absl::StrCat(
              "must name the image of ",
              role_.type == api::RoleType::kCpuWorker ? "the Python operators" : "training.script",
              ", as image of the container ", api::kRuntimeContainer, " in spec.containers"));
    }
    if (role_.pod_template.empty()) return;
    const json parsed = json::parse(role_.pod_template, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_object()) return Add("", "must be an object");
    CheckMetadata(parsed);
    const json* spec = Section(parsed, "", "spec", json::value_t::object);
    if (spec == nullptr) return;
    CheckPod(*spec);
    if (own_image_ || !NamesRuntimeImage(role_)) CheckArchitecture(*spec);
    CheckVolumes(*spec);
    CheckContainers(*spec);
  }

 private:
  void Add(const std::string& place, std::string reason) {
    errors_.push_back({path_ + place, std::move(reason)});
  }

  // The member `key`, null when it is absent or, after a finding, of another type.
  const json* Section(const json& parent, const std::string& place, const char* key,
                      json::value_t type) {
    const auto found = parent.find(key);
    if (found == parent.end() || found->is_null()) return nullptr;
    if (found->type() == type) return &*found;
    Add(absl::StrCat(place, ".", key),
        type == json::value_t::object ? "must be an object" : "must be a list");
    return nullptr;
  }

  // Calls visit(element, place) for the objects of a list; other elements are findings.
  template <typename Visit>
  void ForEach(const json& parent, const std::string& place, const char* key, Visit visit) {
    const json* list = Section(parent, place, key, json::value_t::array);
    if (list == nullptr) return;
    for (size_t i = 0; i < list->size(); ++i) {
      const std::string element = absl::StrCat(place, ".", key, "[", i, "]");
      if ((*list)[i].is_object()) {
        visit((*list)[i], element);
      } else {
        Add(element, "must be an object");
      }
    }
  }

  void CheckMetadata(const json& parsed) {
    const json* metadata = Section(parsed, "", "metadata", json::value_t::object);
    if (metadata == nullptr) return;
    for (const char* part : {"labels", "annotations"}) {
      const json* names = Section(*metadata, ".metadata", part, json::value_t::object);
      if (names == nullptr) continue;
      for (const auto& [name, unused] : names->items()) {
        if (name == api::kQueueLabel) {
          Add(absl::StrCat(".metadata.", part, "[", name, "]"),
              "it is the job's own label that names a queue: move it to the job's metadata");
        }
        if (!absl::StartsWith(name, api::kLabelPrefix)) continue;
        Add(absl::StrCat(".metadata.", part, "[", name, "]"),
            absl::StrCat(api::kLabelPrefix, " is reserved for the operator; use another prefix"));
      }
    }
  }

  void CheckPod(const json& spec) {
    const std::string policy = TextOf(spec, "restartPolicy");
    if (!policy.empty() && policy != "Never") {
      Add(".spec.restartPolicy",
          "must be Never or absent; restarts are the operator's, see runPolicy.maxRestarts");
    }
    Section(spec, ".spec", "securityContext", json::value_t::object);
    Section(spec, ".spec", "imagePullSecrets", json::value_t::array);
  }

  void CheckArchitecture(const json& spec) {
    const json* selector = Section(spec, ".spec", "nodeSelector", json::value_t::object);
    const std::string given = selector == nullptr ? "" : TextOf(*selector, kArchitectureLabel);
    if (given.empty() || given == kArchitecture) return;
    Add(absl::StrCat(".spec.nodeSelector[", kArchitectureLabel, "]"),
        absl::StrCat("must be ", kArchitecture, " or absent: the operator's program ",
                     own_image_ ? "in that image " : "", "is built for nothing else"));
  }

  void CheckVolumes(const json& spec) {
    ForEach(spec, ".spec", "volumes", [this](const json& volume, const std::string& place) {
      const std::string name = TextOf(volume, "name");
      bool ours = own_image_ && name == kProgramVolume;
      for (const char* own : {kConfigVolume, kTlsVolume, kTemporaryVolume, kSharedMemoryVolume}) {
        ours = ours || name == own;
      }
      if (!ours) return;
      Add(place + ".name", absl::StrCat("\"", name, "\" is the operator's own; rename it"));
    });
  }

  void CheckContainers(const json& spec) {
    int runtimes = 0, containers = 0;
    ForEach(spec, ".spec", "containers", [&](const json& container, const std::string& place) {
      ++containers;
      if (TextOf(container, "name") == api::kRuntimeContainer) {
        ++runtimes;
        CheckRuntime(container, place);
      } else {
        CheckSidecar(container, place);
      }
    });
    if (containers > 0 && runtimes != 1) {
      Add(".spec.containers",
          absl::StrCat("must have exactly one container named ", api::kRuntimeContainer,
                       ", which the operator completes; found ", runtimes));
    }
    ForEach(spec, ".spec", "initContainers", [&](const json& container, const std::string& place) {
      const std::string name = TextOf(container, "name");
      const bool ours = name == api::kRuntimeContainer || (own_image_ && name == kInstallContainer);
      if (!ours) return;
      Add(place + ".name",
          absl::StrCat("\"", name, "\" is the operator's own container; rename it"));
    });
  }

  void CheckRuntime(const json& container, const std::string& place) {
    for (const char* part : {"securityContext", "resources"}) {
      Section(container, place, part, json::value_t::object);
    }
    Section(container, place, "ports", json::value_t::array);
    ForEach(container, place, "env", [this](const json& variable, const std::string& at) {
      const std::string name = TextOf(variable, "name");
      if (!IsReserved(name)) return;
      Add(at + ".name",
          absl::StrCat("\"", name, "\": variables that begin with ",
                       api::environment::kReservedPrefix, " are the operator's own; rename it"));
    });
    ForEach(container, place, "volumeMounts", [this](const json& mount, const std::string& at) {
      const std::string path = TextOf(mount, "mountPath");
      for (const std::string ours : {kConfigFolder, kTlsFolder, kProgramFolder}) {
        if (ours == kProgramFolder && !own_image_) continue;
        if (path != ours && !absl::StartsWith(path, absl::StrCat(ours, "/"))) continue;
        Add(at + ".mountPath",
            absl::StrCat("\"", path, "\" is the operator's own; mount it elsewhere"));
      }
    });
  }

  // Containers of a pod share its ports.
  void CheckSidecar(const json& container, const std::string& place) {
    ForEach(container, place, "ports", [this](const json& port, const std::string& at) {
      for (const auto& [name, number] : PortsOf(role_.type)) {
        if (port.value("containerPort", json()) != number) continue;
        Add(at + ".containerPort", absl::StrCat(number, " is the ", name, " port of the container ",
                                                api::kRuntimeContainer, "; choose another"));
      }
    });
  }

  const api::Role& role_;
  const bool own_image_;
  const std::string path_;
  std::vector<TemplateError>& errors_;
};

}  // namespace

std::vector<TemplateError> CheckTemplates(const api::HeteroTrainingJob& job) {
  std::vector<TemplateError> errors;
  for (size_t i = 0; i < job.spec.roles.size(); ++i) {
    const api::Role& role = job.spec.roles[i];
    Checker(role, BringsOwnImage(job, role), absl::StrCat("spec.roles[", i, "].template"), errors)
        .Check();
  }
  return errors;
}

}  // namespace hetero::children
