#include "api/validate.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "api/enums.h"

namespace hetero::api {
namespace {

bool IsSynthetic(const DatasetSource& source) {
  return source.format == DatasetFormat::kSynthetic || source.uri.starts_with("synthetic://");
}

bool NamesItsFields(const DatasetSource& source) {
  return !IsSynthetic(source) && source.format != DatasetFormat::kIdx &&
         source.format != DatasetFormat::kImageFolder;
}

// What Auto stands for, is found out when the data is.
bool MayNeedIndex(const DatasetSource& source) {
  if (IsSynthetic(source)) return false;
  return source.format == DatasetFormat::kAuto || source.format == DatasetFormat::kWebDataset ||
         source.format == DatasetFormat::kTfRecord || source.format == DatasetFormat::kRecordIo;
}

void CheckSource(const DatasetSource& source, const std::string& path, Findings& findings) {
  const bool synthetic_uri = source.uri.starts_with("synthetic://");
  if (source.format == DatasetFormat::kSynthetic && !synthetic_uri) {
    findings.Add(path + ".uri", "must be synthetic:// when format is Synthetic");
  }
  if (synthetic_uri && source.format != DatasetFormat::kSynthetic &&
      source.format != DatasetFormat::kAuto) {
    findings.Add(path + ".format", absl::StrCat("must be Auto or Synthetic for synthetic://, got ",
                                                std::string(NameOf(source.format))));
  }
  const bool lists_folders =
      source.format == DatasetFormat::kImageFolder || source.format == DatasetFormat::kIdx;
  if (source.uri.starts_with("https://") && lists_folders) {
    findings.Add(path + ".format",
                 absl::StrCat("must not be ", std::string(NameOf(source.format)),
                              " for https://: a web server lists no folders; name shards or a "
                              "manifest there"));
  }
  if (source.fields != SampleFields() && !NamesItsFields(source)) {
    findings.Add(path + ".fields",
                 absl::StrCat("is not taken by ", std::string(NameOf(source.format)),
                              ", whose samples have no fields with names"));
  }
  if (source.index && !MayNeedIndex(source)) {
    findings.Add(path + ".index", absl::StrCat("is taken only by WebDataset, TFRecord, RecordIO; ",
                                               std::string(NameOf(source.format)),
                                               " says itself where its samples lie"));
  }
  if (!IsSynthetic(source)) return;
  if (!source.samples) findings.Add(path + ".samples", "is required for synthetic data");
  if (!source.classes) findings.Add(path + ".classes", "is required for synthetic data");
  if (!source.image) findings.Add(path + ".image", "is required for synthetic data");
}

void CheckIndexes(const Dataset& dataset, Findings& findings) {
  if (!dataset.index || !dataset.validation || !dataset.validation->index) return;
  const std::string& uri = dataset.validation->index->uri;
  if (uri.empty() || uri != dataset.index->uri || dataset.uri == dataset.validation->uri) return;
  findings.Add("spec.dataset.validation.index.uri",
               "names the index of the training set; validation needs its own");
}

void CheckLabel(const Spec& spec, Findings& findings) {
  const std::string path = "spec.dataset.label";
  if (findings.Broken(path) || !spec.dataset.label) return;
  const Label& label = *spec.dataset.label;
  if (!label.numbers()) {
    const std::string why = absl::StrCat("is not taken by type ", std::string(NameOf(label.type)));
    if (!label.shape.empty()) findings.Add(path + ".shape", why);
    if (!label.field.empty()) findings.Add(path + ".field", why);
  }
  const LabelField& field = spec.dataset.fields.label;
  if (!label.field.empty() && !field.field.empty()) {
    findings.Add(path + ".field", "says what spec.dataset.fields.label.field says; give one");
  }
  if (label.type != LabelType::kClass && field.offset) {
    findings.Add("spec.dataset.fields.label.offset", "is added to classes alone");
  }
  int64_t numbers = 1;
  for (const int32_t dimension : label.shape) numbers *= dimension;
  if (numbers > kMaxLabelNumbers) {
    findings.Add(path + ".shape",
                 absl::StrCat("is ", numbers, " numbers, ", kMaxLabelNumbers, " at most"));
  }
  if (label.type != LabelType::kClass && !spec.training.script &&
      !findings.Broken("spec.training.script")) {
    findings.Add(path,
                 absl::StrCat("models learn classes, and type ", std::string(NameOf(label.type)),
                              " is for spec.training.script alone"));
  }
}

void CheckDataset(const Dataset& dataset, Findings& findings) {
  const std::string path = "spec.dataset";
  const std::string validation = path + ".validation";
  if (dataset.validation && !findings.Broken(validation)) {
    CheckSource(*dataset.validation, validation, findings);
  }
  if (findings.Broken(path + ".uri") || findings.Broken(path + ".format") ||
      findings.Broken(path + ".image")) {
    return;
  }
  CheckSource(dataset, path, findings);
  CheckIndexes(dataset, findings);
}

void CheckModel(const Training& training, Findings& findings) {
  const std::string path = "spec.training.model";
  if (training.script || findings.Broken(path) || findings.Unread(path)) return;
  const Model& model = training.model;
  const bool script = !model.torch_script.empty();
  const bool plugin = !model.plugin.empty();
  if (script && (plugin || !model.name.empty())) {
    findings.Add(path, "needs exactly one of {name}, {torchScript} and {plugin, name}");
  } else if (!script && model.name.empty()) {
    findings.Add(path, plugin ? "plugin needs name, the model inside the plugin"
                              : "needs one of {name}, {torchScript} and {plugin, name}, or "
                                "spec.training.script in its place");
  }
  if (!model.exclude.empty() && model.weights.empty()) {
    findings.Add(path + ".exclude", "is taken only with weights");
  }
  if (!model.freeze.empty() && script) {
    findings.Add(path + ".freeze",
                 "is not taken with torchScript; use a built-in model or a plugin");
  }
  if (!model.freeze.empty() && training.parallelism.partitions > 1) {
    findings.Add(path + ".freeze", "is not taken with partitions above 1");
  }
}

void CheckSchedule(const Training& training, Findings& findings) {
  const std::string path = "spec.training.schedule";
  if (findings.Broken(path)) return;
  const Schedule& schedule = training.schedule;
  const bool steps = schedule.name == ScheduleKind::kStep;
  if (steps && !schedule.step_epochs) {
    findings.Add(path + ".stepEpochs", "is required when name is Step");
  }
  if (!steps && schedule.step_epochs) {
    findings.Add(path + ".stepEpochs", "is taken only when name is Step");
  }
}

void CheckParallelism(const Spec& spec, Findings& findings) {
  const std::string path = "spec.training.parallelism";
  if (findings.Broken("spec.training") || findings.Broken("spec.roles")) return;
  const Parallelism& parallelism = spec.training.parallelism;
  if (parallelism.partitions < 1) return;  // said where its limits are checked
  if (parallelism.partitions == 1) {
    if (parallelism.microbatches != 1) {
      findings.Add(path + ".microbatches",
                   "is taken only with partitions above 1; use gradientAccumulationSteps");
    }
    return;
  }
  if (spec.world_size() % parallelism.partitions != 0) {
    findings.Add(path + ".partitions",
                 absl::StrCat("must divide the number of ranks of all GPUWorkers (",
                              spec.world_size(), "), got ", parallelism.partitions));
  }
  const int64_t samples = int64_t{spec.training.batch_size_per_worker} * parallelism.partitions;
  if (parallelism.microbatches > samples) {
    findings.Add(path + ".microbatches",
                 absl::StrCat("must be at most batchSizePerWorker x partitions (", samples,
                              "), got ", parallelism.microbatches));
  }
}

void CheckTraining(const Spec& spec, Findings& findings) {
  const std::string path = "spec.training";
  const Training& training = spec.training;
  CheckModel(training, findings);
  CheckSchedule(training, findings);
  CheckParallelism(spec, findings);
  if (!training.epochs && !training.max_steps && !findings.Broken(path)) {
    findings.Add(path, "needs epochs, maxSteps or both; training would never end");
  }
  if (training.optimizer.name != OptimizerKind::kSgd && training.optimizer.momentum != 0 &&
      !findings.Broken(path + ".optimizer")) {
    findings.Add(path + ".optimizer.momentum", "is taken only when name is SGD; use betas");
  }
  if (!training.evaluation || findings.Broken(path + ".evaluation")) return;
  if (training.evaluation->every_epochs.has_value() ==
      training.evaluation->every_steps.has_value()) {
    findings.Add(path + ".evaluation", "needs exactly one of everyEpochs and everySteps");
  }
  if (!spec.dataset.validation && !findings.Broken("spec.dataset")) {
    findings.Add(path + ".evaluation", "needs spec.dataset.validation to evaluate on");
  }
}

void CheckReplicas(const Role& role, const std::string& path, Findings& findings) {
  if (role.type == RoleType::kHead && role.replicas != 1) {
    findings.Add(path + ".replicas", absl::StrCat("must be 1 for the Head, got ", role.replicas));
  }
  if (role.type == RoleType::kGpuWorker && role.replicas < 1) {
    findings.Add(path + ".replicas", "must be at least 1 for a GPUWorker, got 0");
  }
  if (role.type != RoleType::kGpuWorker && role.gpus_per_replica) {
    findings.Add(path + ".gpusPerReplica", "is taken only by a GPUWorker");
  }
  if (role.type != RoleType::kCpuWorker) {
    if (role.min_replicas) findings.Add(path + ".minReplicas", "is taken only by a CPUWorker");
    if (role.max_replicas) findings.Add(path + ".maxReplicas", "is taken only by a CPUWorker");
    return;
  }
  if (role.min_replicas.value_or(role.replicas) > role.replicas) {
    findings.Add(path + ".minReplicas", absl::StrCat("must be at most replicas (", role.replicas,
                                                     "), got ", *role.min_replicas));
  }
  if (role.max_replicas.value_or(role.replicas) < role.replicas) {
    findings.Add(path + ".maxReplicas", absl::StrCat("must be at least replicas (", role.replicas,
                                                     "), got ", *role.max_replicas));
  }
}

void CheckFailureRules(const Role& role, const std::string& role_path, Findings& findings) {
  for (size_t i = 0; i < role.failure_rules.size(); ++i) {
    const FailureRule& rule = role.failure_rules[i];
    const std::string path = Element(role_path + ".failureRules", i);
    if (findings.Broken(path)) continue;
    if (rule.on_exit_codes.has_value() == rule.on_reason.has_value()) {
      findings.Add(path, "needs exactly one of onExitCodes and onReason");
    }
    if (!rule.on_exit_codes) continue;
    std::set<int32_t> seen;
    for (size_t k = 0; k < rule.on_exit_codes->values.size(); ++k) {
      if (seen.insert(rule.on_exit_codes->values[k]).second) continue;
      findings.Add(Element(path + ".onExitCodes.values", k),
                   absl::StrCat(rule.on_exit_codes->values[k], " is given twice"));
    }
  }
}

void CheckRoles(const std::vector<Role>& roles, Findings& findings) {
  std::map<std::string, size_t> first_index;
  for (size_t i = 0; i < roles.size(); ++i) {
    const std::string path = Element("spec.roles", i);
    CheckFailureRules(roles[i], path, findings);
    const auto [first, is_new] = first_index.emplace(roles[i].name, i);
    if (!is_new && !roles[i].name.empty()) {
      findings.Add(path + ".name", absl::StrCat("'", roles[i].name, "' is the name of ",
                                                Element("spec.roles", first->second), " too"));
    }
    if (!findings.Broken(path)) CheckReplicas(roles[i], path, findings);
  }
  if (findings.Broken("spec.roles")) return;
  const auto count = [&](RoleType type) {
    return std::count_if(roles.begin(), roles.end(),
                         [type](const Role& role) { return role.type == type; });
  };
  const auto heads = count(RoleType::kHead);
  if (heads != 1) {
    findings.Add("spec.roles", absl::StrCat("needs exactly one role of type Head, has ", heads));
  }
  if (count(RoleType::kGpuWorker) == 0) {
    findings.Add("spec.roles",
                 "needs at least one role of type GPUWorker (gpusPerReplica: 0 trains on the CPU)");
  }
}

void CheckScheduling(const Spec& spec, Findings& findings) {
  if (!spec.scheduling || spec.scheduling->queue.empty()) return;
  if (spec.scheduling->gang == GangScheduler::kVolcano) return;
  findings.Add("spec.scheduling.queue",
               "is a queue of Volcano, taken only with gang: Volcano; a queue of Kueue is named by "
               "the job's label kueue.x-k8s.io/queue-name");
}

// MultiKueue's copy of a job has no spec.managedBy, and must not then have the other.
void CheckManager(const Spec& spec, Findings& findings) {
  if (spec.managed_by.empty() || spec.run_policy.managed_by.empty()) return;
  findings.Add("spec.managedBy", "takes the place of runPolicy.managedBy; name one of the two");
}

}  // namespace

void Validate(const HeteroTrainingJob& job, Findings& findings) {
  CheckDataset(job.spec.dataset, findings);
  CheckLabel(job.spec, findings);
  ValidatePipeline(job.spec, findings);
  ValidateViews(job.spec, findings);
  ValidateMask(job.spec, findings);
  CheckTraining(job.spec, findings);
  ValidateScript(job.spec, findings);
  ValidateStorage(job.spec.storage, "spec.storage", findings);
  CheckRoles(job.spec.roles, findings);
  CheckScheduling(job.spec, findings);
  CheckManager(job.spec, findings);
  ValidateInsight(job.spec, findings);
}

}  // namespace hetero::api
