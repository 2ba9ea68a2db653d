#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/operator_spec.h"

// The HeteroTrainingJob custom resource as plain values: what docs and crds/ call the manifest.
// Shared by operator, runtime and command line; one parser for all of them (manifest.h).
// Field names are the manifest's in snake_case. An empty optional means "not given"; Default() in
// defaults.h fills those that have a static default. Values are copyable and have no behaviour.
namespace hetero::api {

enum class DatasetFormat {
  kAuto,
  kSynthetic,
  kIdx,
  kCifar10,
  kCifar100,
  kImageFolder,
  kTfRecord,
  kRecordIo,
  kWebDataset,
  kMds,
  kParquet,
  kManifest
};

enum class ShuffleMode { kFull, kBlock, kNone };

struct Shuffle {
  ShuffleMode mode = ShuffleMode::kFull;
  int64_t block_size = 1024;      // samples per block, mode Block only
  std::optional<int32_t> window;  // blocks that are mixed with each other; absent: 1
};

// Where a sample's label stands, in formats that name what they hold.
struct LabelField {
  std::string field;              // empty: the format's usual name
  std::optional<int32_t> offset;  // of classes: added to the number that is found
  bool operator==(const LabelField&) const = default;
};

// What a dataset calls the parts of its samples.
struct SampleFields {
  std::string image;  // empty: the format's usual name
  LabelField label;
  std::string mask;  // empty: samples have no mask
  bool operator==(const SampleFields&) const = default;
};

enum class IndexBuild { kAuto, kAlways, kNever };

// Where the samples lie in a format's shards, as an index has it.
struct DatasetIndex {
  std::string uri;                       // of the index; empty: there is none, and none is written
  IndexBuild build = IndexBuild::kAuto;  // whether a job makes one that is missing
  bool operator==(const DatasetIndex&) const = default;
};

// Where samples come from. `samples`, `classes` and `image` are required for Synthetic and are
// otherwise checked against the data.
struct DatasetSource {
  std::string uri;
  DatasetFormat format = DatasetFormat::kAuto;
  std::optional<int64_t> samples;
  std::optional<int32_t> classes;
  std::optional<ImageShape> image;
  SampleFields fields;
  std::optional<DatasetIndex> index;
  int32_t max_bad_samples = 100;
};

enum class LabelType { kClass, kInt64, kFloat32, kNone };

// What a sample has beside its picture. A class is a number in [0, classes); every other type is
// for scripts alone.
// Of one sample's label. More would be a tensor of its own kind, and no label.
inline constexpr int64_t kMaxLabelNumbers = 65536;

struct Label {
  LabelType type = LabelType::kClass;
  std::vector<int32_t> shape;  // of one sample's; empty: a single number
  std::string field;           // what the format calls it; empty: the format's usual name

  bool numbers() const { return type == LabelType::kInt64 || type == LabelType::kFloat32; }
  bool operator==(const Label&) const = default;
};

// A picture of classes beside each sample's own, where dataset.fields.mask says where it is.
struct Mask {
  std::string name;             // of the tensor; empty: "mask"
  std::optional<int32_t> fill;  // where an operator looks beyond the picture; absent: 0
};

struct Dataset : DatasetSource {
  std::optional<Label> label;  // absent: a class
  std::optional<Mask> mask;    // absent: as if it said nothing

  bool has_mask() const { return !fields.mask.empty(); }
  std::string mask_name() const { return mask && !mask->name.empty() ? mask->name : "mask"; }
  Shuffle shuffle;
  std::optional<DatasetSource> validation;
};

// Pictures that are made of each training sample, each with random numbers of its own (views.h).
struct View {
  std::string name;   // of the tensor; "image" is there without being named, once
  int32_t count = 1;  // so many, one behind the other
};

struct Model {
  std::string name;          // mlp, resnet18, resnet50, vit_b_16
  std::string torch_script;  // URI
  std::string plugin;        // path; `name` then names the model inside
  std::string weights;       // URI of a safetensors file
  // Names of tensors, or of modules with all below them; `*` stands for any characters. Tensors
  // that keep the values that the model begins with, whatever `weights` has of them.
  std::vector<std::string> exclude;
  // Likewise: parameters that are not trained.
  std::vector<std::string> freeze;
};

enum class LastBatch { kKeep, kDrop };

struct Loss {
  std::string name = "CrossEntropy";
  double label_smoothing = 0;
};

enum class OptimizerKind { kSgd, kAdam, kAdamW };

struct Optimizer {
  OptimizerKind name = OptimizerKind::kSgd;
  double learning_rate = 0.01;
  double momentum = 0;  // SGD
  double weight_decay = 0;
  std::vector<double> betas = {0.9, 0.999};  // Adam, AdamW
  double epsilon = 1e-8;                     // Adam, AdamW
};

enum class ScheduleKind { kConstant, kStep, kCosine };
enum class LearningRateScaling { kNone, kLinearWithWorldSize };

struct Schedule {
  ScheduleKind name = ScheduleKind::kConstant;
  int64_t warmup_steps = 0;
  std::optional<int64_t> step_epochs;  // Step
  double gamma = 0.1;                  // Step
  double min_learning_rate = 0;        // Cosine
  LearningRateScaling scale_learning_rate = LearningRateScaling::kNone;
};

enum class Precision { kFp32, kBf16 };
enum class NonFiniteAction { kFail, kSkip };
enum class ResumeMode { kAuto, kNever };
enum class CheckpointLocking { kExclusive, kNone };

struct Evaluation {
  std::optional<int64_t> every_epochs;
  std::optional<int64_t> every_steps;
};

struct Checkpoint {
  static constexpr int64_t kUsualSeconds = 1800;

  std::string uri;
  std::optional<int64_t> every_steps;
  std::optional<int64_t> every_seconds;
  int32_t keep = 2;
  ResumeMode resume = ResumeMode::kAuto;
  CheckpointLocking lock = CheckpointLocking::kExclusive;

  // Nothing says when: after each epoch, and in long ones by the clock.
  bool usual() const { return !every_steps && !every_seconds; }
  // One is due when so many seconds have passed since the last; none: that is no reason.
  std::optional<int64_t> interval_seconds() const {
    return usual() ? kUsualSeconds : every_seconds;
  }
};

struct Parallelism {
  int32_t partitions = 1;
  int32_t microbatches = 1;
};

// The user's own training program, started once for each rank.
struct Script {
  std::vector<std::string> command;  // program and arguments
  // Absolute in a container; on one machine relative to the manifest's folder. Empty: that folder,
  // in a container the image's own.
  std::string working_directory;
};

struct Training {
  Model model;  // not beside `script`
  std::optional<Script> script;
  int32_t batch_size_per_worker = 0;
  std::string input_window;  // "512Mi" (byte_size.h); empty: by the memory that there is
  std::optional<int64_t> epochs;
  std::optional<int64_t> max_steps;
  LastBatch last_batch = LastBatch::kKeep;
  Loss loss;
  Optimizer optimizer;
  Schedule schedule;
  Precision precision = Precision::kFp32;
  int32_t gradient_accumulation_steps = 1;
  std::optional<double> gradient_clip_norm;
  int64_t seed = 0;
  std::optional<Evaluation> evaluation;
  std::optional<Checkpoint> checkpoint;
  NonFiniteAction stop_on_non_finite = NonFiniteAction::kFail;
  Parallelism parallelism;
};

struct Output {
  std::string uri;
};

struct SecretReference {
  std::string name;
};

// What the owner of a store takes, in dollars.
struct StoragePrices {
  std::string per_thousand_gets;  // decimal
  std::string per_gb_egress;      // decimal; of 10^9 bytes
};

// How what lies below a prefix is reached. What is empty is found as AWS's own tools find it.
struct StorageAccess {
  std::string prefix;  // s3://bucket, s3://bucket/a, https://host/a: whole parts of a path
  std::string endpoint;
  std::string region;
  std::optional<bool> path_style;
  std::optional<bool> anonymous;
  std::string ca_bundle;                      // a PEM file's path where the process runs
  std::optional<SecretReference> secret_ref;  // in the job's namespace; storage_keys.h
  std::optional<StoragePrices> prices;
};

enum class RoleType { kHead, kCpuWorker, kGpuWorker };
enum class RestartScope { kPod, kGang };
enum class FailureAction { kFailJob, kRestartGang, kRestartPod, kIgnore };
enum class ExitCodeOperator { kIn, kNotIn };
enum class FailureReason { kOomKilled, kEvicted, kDisruption };

// What a role's pods may run on: nodes that may be taken away at any time, others, or both.
enum class Capacity { kSpot, kOnDemand, kAny };

struct ExitCodes {
  ExitCodeOperator op = ExitCodeOperator::kIn;  // `operator` in the manifest
  std::vector<int32_t> values;
};

struct FailureRule {
  FailureAction action = FailureAction::kFailJob;
  std::optional<ExitCodes> on_exit_codes;
  std::optional<FailureReason> on_reason;
};

inline constexpr int32_t kMostReplicas = 10000;  // of a role

struct Role {
  std::string name;
  RoleType type = RoleType::kHead;
  int32_t replicas = 1;
  std::optional<int32_t> min_replicas;      // CPUWorker; defaults to replicas
  std::optional<int32_t> max_replicas;      // CPUWorker; defaults to replicas
  std::optional<int32_t> gpus_per_replica;  // GPUWorker; 1; 0 trains one rank on the CPU
  std::string price_per_hour;               // decimal
  std::optional<Capacity> capacity;         // absent: as the template says
  RestartScope restart_scope = RestartScope::kPod;
  std::vector<FailureRule> failure_rules;
  std::string pod_template;  // PodTemplateSpec as compact JSON; empty when absent

  // Ranks that one replica trains: max(1, gpus_per_replica) for a GPUWorker, 0 otherwise.
  int32_t ranks_per_replica() const {
    if (type != RoleType::kGpuWorker) return 0;
    const int32_t gpus = gpus_per_replica.value_or(1);
    return gpus > 0 ? gpus : 1;
  }
};

enum class CleanPodPolicy { kAll, kRunning, kNone };

struct RunPolicy {
  bool suspend = false;
  std::string managed_by;  // deprecated: Spec::manager()
  int32_t startup_deadline_seconds = 600;
  std::optional<int64_t> active_deadline_seconds;
  std::optional<int64_t> max_wait_seconds;  // from the job's creation to its first step
  std::string max_dollars;                  // decimal; empty: no limit
  int32_t member_timeout_seconds = 5;
  std::optional<int32_t> stall_timeout_seconds;
  int32_t stop_grace_seconds = 60;
  int32_t max_restarts = 3;
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kAll;
  std::optional<int32_t> ttl_seconds_after_finished;
};

enum class Switch { kEnabled, kDisabled };

struct Network {
  Switch network_policy = Switch::kEnabled;
  Switch tls = Switch::kEnabled;
};

// Whether all pods of a job go to one zone: rather so, in any case, or wherever there is room.
enum class ZoneChoice { kPrefer, kSame, kAny };

struct PodPlacement {
  std::optional<ZoneChoice> zone;  // absent: Prefer
};

// Who places the pods that the job cannot do without all at once, or none of them.
enum class GangScheduler { kNone, kVolcano, kCoscheduling, kNative };

// How a shared cluster's queue hands out what the job needs.
struct Scheduling {
  // The WorkloadPriorityClass of CPU workers beyond those that the job cannot do without; empty:
  // the job has none such.
  std::string elastic_priority_class;
  GangScheduler gang = GangScheduler::kNone;
  std::string queue;  // of Volcano; empty: the one that it has for those that name none
};

// What becomes of a job whose Python operators are found to be no functions of their arguments.
enum class Verification { kWarn, kStrict, kDisabled };

// What becomes of what a rule finds.
enum class RuleAction { kReport, kIgnore };

struct RuleThreshold {
  std::string name;  // of the rule's own (finding_rules.h)
  double value = 0;  // in the unit that its row says
};

// How one rule about where the time goes is judged; a rule without an entry is reported, with the
// thresholds of its row.
struct InsightRule {
  std::string name;  // "InputBound" (finding_rules.h)
  RuleAction action = RuleAction::kReport;
  std::vector<RuleThreshold> thresholds;  // in the place of the row's
};

struct Insight {
  std::vector<InsightRule> rules;
};

struct Spec {
  Dataset dataset;
  std::vector<OperatorSpec> pipeline;
  std::vector<View> views;
  std::optional<Verification> verify;  // Warn
  Training training;
  std::optional<Output> output;
  std::vector<StorageAccess> storage;  // of several that match, the longest prefix counts
  std::vector<Role> roles;
  std::string managed_by;
  RunPolicy run_policy;
  Network network;
  Switch autoscaling = Switch::kDisabled;
  std::optional<Scheduling> scheduling;
  std::optional<PodPlacement> placement;
  std::optional<Insight> insight;

  // Whose the job is; empty: the operator's.
  const std::string& manager() const {
    return managed_by.empty() ? run_policy.managed_by : managed_by;
  }

  // Ranks of the whole job: GPUWorker roles in manifest order, then replica, then local index.
  int32_t world_size() const {
    int32_t ranks = 0;
    for (const Role& role : roles) ranks += role.replicas * role.ranks_per_replica();
    return ranks;
  }
};

struct Metadata {
  std::string name;
  std::string name_space;  // `namespace`
  std::string uid;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
};

struct HeteroTrainingJob {
  Metadata metadata;
  Spec spec;
};

}  // namespace hetero::api
