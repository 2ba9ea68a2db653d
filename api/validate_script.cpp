#include <string>

#include "absl/strings/str_cat.h"
#include "api/encode.h"
#include "api/validate.h"

namespace hetero::api {
namespace {

constexpr char kPath[] = "spec.training.script";

template <typename T>
bool IsInitial(const T& value, const T& initial) {
  return EncodeValue(value, {}) == EncodeValue(initial, {});
}

// What the script decides itself. Fields of the stream mean what they always do.
void CheckTraining(const Training& training, Findings& findings) {
  const Training initial;
  const auto refuse = [&findings](bool given, const std::string& field, const std::string& why) {
    const std::string path = absl::StrCat("spec.training.", field);
    if (!given || findings.Broken(path)) return;
    findings.Add(path, absl::StrCat("is not taken beside script, ", why, "; leave it out"));
  };
  constexpr char kDecides[] = "which decides that itself";
  refuse(!IsInitial(training.model, initial.model), "model", "which makes its own model");
  refuse(!IsInitial(training.loss, initial.loss), "loss", kDecides);
  refuse(!IsInitial(training.optimizer, initial.optimizer), "optimizer", kDecides);
  refuse(!IsInitial(training.schedule, initial.schedule), "schedule", kDecides);
  refuse(training.precision != initial.precision, "precision", kDecides);
  refuse(training.gradient_clip_norm.has_value(), "gradientClipNorm", kDecides);
  refuse(training.evaluation.has_value(), "evaluation",
         "which asks for the validation samples when it wants them");
  refuse(training.stop_on_non_finite != initial.stop_on_non_finite, "stopOnNonFinite", kDecides);
  refuse(!IsInitial(training.parallelism, initial.parallelism), "parallelism", kDecides);
  if (!training.checkpoint) return;
  const Checkpoint usual;
  refuse(training.checkpoint->keep != usual.keep, "checkpoint.keep", "which saves itself");
  refuse(training.checkpoint->resume != usual.resume, "checkpoint.resume", "which loads itself");
  refuse(training.checkpoint->lock != usual.lock, "checkpoint.lock", "which saves itself");
}

// The container of the user's image runs the agent, and that the script.
void CheckTemplate(const Role& role, const std::string& role_path, Findings& findings) {
  if (role.type != RoleType::kGpuWorker || role.pod_template.empty()) return;
  const auto pod = nlohmann::json::parse(role.pod_template, nullptr, /*allow_exceptions=*/false);
  const auto spec = pod.is_object() ? pod.find("spec") : pod.end();
  if (spec == pod.end() || !spec->is_object()) return;
  const auto containers = spec->find("containers");
  if (containers == spec->end() || !containers->is_array()) return;
  for (size_t i = 0; i < containers->size(); ++i) {
    const nlohmann::json& container = (*containers)[i];
    if (!container.is_object()) continue;
    const auto name = container.find("name");
    if (name == container.end() || *name != "runtime") continue;
    const std::string path = Element(role_path + ".template.spec.containers", i);
    for (const char* field : {"command", "args"}) {
      if (container.value(field, nlohmann::json()).is_null()) continue;
      findings.Add(
          Child(path, field),
          absl::StrCat("is not taken beside script; the program and its arguments go into ", kPath,
                       ".command"));
    }
  }
}

}  // namespace

void ValidateScript(const Spec& spec, Findings& findings) {
  if (!spec.training.script || findings.Broken(kPath)) return;
  if (!spec.training.script->command.empty() && spec.training.script->command[0].empty()) {
    findings.Add(absl::StrCat(kPath, ".command"),
                 "begins with an empty entry; name the program to run");
  }
  CheckTraining(spec.training, findings);
  for (size_t i = 0; i < spec.roles.size(); ++i) {
    CheckTemplate(spec.roles[i], Element("spec.roles", i), findings);
  }
}

}  // namespace hetero::api
