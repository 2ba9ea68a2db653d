#pragma once

#include "api/enums.h"
#include "api/field_limits.h"
#include "api/field_table.h"
#include "api/hetero_training_job.h"

// Every field of the manifest, by type: its name, its member and its limits. crds/ says the same by
// hand; tests/unit/api/schema_test.cpp compares the two. Rules over several fields are in
// validate.cpp. Internal to api.
namespace hetero::api {

constexpr auto FieldsOf(const ImageShape*) {
  constexpr Limits kPixels = Counted(Presence::kRequired, 1, 16384);
  return std::make_tuple(F("height", &ImageShape::height, kPixels),
                         F("width", &ImageShape::width, kPixels),
                         F("channels", &ImageShape::channels, Counted(Presence::kRequired, 1, 64)));
}

constexpr auto FieldsOf(const Size*) {
  constexpr Limits kPixels = Counted(Presence::kRequired, 1, 16384);
  return std::make_tuple(F("height", &Size::height, kPixels), F("width", &Size::width, kPixels));
}

// The numbers' limits are those of the field that holds the range.
constexpr auto FieldsOf(const Range*) {
  return std::make_tuple(F("min", &Range::min, kRequiredField),
                         F("max", &Range::max, kRequiredField));
}

constexpr auto FieldsOf(const Shuffle*) {
  return std::make_tuple(F("mode", &Shuffle::mode, kDefaultedField),
                         F("blockSize", &Shuffle::block_size, AtLeast(1, Presence::kDefaulted)),
                         F("window", &Shuffle::window, Counted(Presence::kOptional, 1, 1000000)));
}

constexpr auto FieldsOf(const LabelField*) {
  return std::make_tuple(
      F("field", &LabelField::field, {.max_length = 127, .pattern = kSampleField}),
      F("offset", &LabelField::offset, Counted(Presence::kOptional, -1000000, 1000000)));
}

constexpr auto FieldsOf(const SampleFields*) {
  return std::make_tuple(
      F("image", &SampleFields::image, {.max_length = 127, .pattern = kSampleField}),
      F("label", &SampleFields::label),
      F("mask", &SampleFields::mask, {.max_length = 127, .pattern = kSampleField}));
}

constexpr auto FieldsOf(const DatasetIndex*) {
  return std::make_tuple(F("uri", &DatasetIndex::uri, Uri(kObjectUri)),
                         F("build", &DatasetIndex::build, kDefaultedField));
}

constexpr auto FieldsOf(const DatasetSource*) {
  return std::make_tuple(
      F("uri", &DatasetSource::uri, Uri(kDatasetUri, Presence::kRequired)),
      F("format", &DatasetSource::format, kDefaultedField),
      F("samples", &DatasetSource::samples, AtLeast(1)),
      F("classes", &DatasetSource::classes, AtLeast(1)), F("image", &DatasetSource::image),
      F("fields", &DatasetSource::fields), F("index", &DatasetSource::index),
      F("maxBadSamples", &DatasetSource::max_bad_samples, AtLeast(0, Presence::kDefaulted)));
}

constexpr auto FieldsOf(const Label*) {
  return std::make_tuple(
      F("type", &Label::type, kRequiredField),
      F("shape", &Label::shape, {.min = 1, .max = 65536, .min_items = 1, .max_items = 3}),
      F("field", &Label::field, {.max_length = 63, .pattern = kIdentifier}));
}

constexpr auto FieldsOf(const Mask*) {
  return std::make_tuple(F("name", &Mask::name, {.max_length = 63, .pattern = kIdentifier}),
                         F("fill", &Mask::fill, Counted(Presence::kOptional, 0, 255)));
}

constexpr auto FieldsOf(const Dataset*) {
  return std::tuple_cat(FieldsOf(static_cast<const DatasetSource*>(nullptr)),
                        std::make_tuple(F("label", &Dataset::label), F("mask", &Dataset::mask),
                                        F("shuffle", &Dataset::shuffle, kDefaultedField),
                                        F("validation", &Dataset::validation)));
}

constexpr auto FieldsOf(const OperatorImage*) {
  return std::make_tuple(
      F("shape", &OperatorImage::shape,
        {.presence = Presence::kRequired, .min = 1, .max = 16384, .min_items = 3, .max_items = 3}),
      F("type", &OperatorImage::type));
}

constexpr auto FieldsOf(const OperatorOutputs*) {
  return std::make_tuple(F("image", &OperatorOutputs::image, kRequiredField));
}

constexpr auto FieldsOf(const OperatorSpec*) {
  using Op = OperatorSpec;
  constexpr Limits kFactor = Counted(Presence::kOptional, 0, 100);
  constexpr Limits kChannels{.min = 0, .min_items = 1, .max_items = 64};
  constexpr Limits kSpread{.min = 0, .above_min = true, .min_items = 1, .max_items = 64};
  constexpr Limits kPositive{.min = 0, .max = 1000, .above_min = true};
  constexpr Limits kShare{.min = 0, .max = 1, .above_min = true};
  return std::make_tuple(
      F("op", &Op::op, kRequiredField),
      F("repeat", &Op::repeat, Counted(Presence::kDefaulted, 1, 100)),
      F("placement", &Op::placement, kDefaultedField),
      F("views", &Op::views,
        {.min_items = 1, .max_items = 8, .max_length = 63, .pattern = kViewName}),
      F("size", &Op::size),
      F("shorterSide", &Op::shorter_side, Counted(Presence::kOptional, 1, 16384)),
      F("interpolation", &Op::interpolation), F("scale", &Op::scale, kShare),
      F("ratio", &Op::ratio, kPositive),
      F("probability", &Op::probability, Counted(Presence::kOptional, 0, 1)),
      F("kernelSize", &Op::kernel_size, Counted(Presence::kOptional, 1, 255)),
      F("sigma", &Op::sigma, kPositive), F("brightness", &Op::brightness, kFactor),
      F("contrast", &Op::contrast, kFactor), F("saturation", &Op::saturation, kFactor),
      F("hue", &Op::hue, Counted(Presence::kOptional, -0.5, 0.5)),
      F("degrees", &Op::degrees, Counted(Presence::kOptional, -360, 360)),
      F("outputChannels", &Op::output_channels, Counted(Presence::kOptional, 1, 3)),
      F("mean", &Op::mean, kChannels), F("std", &Op::std, kSpread), F("type", &Op::type),
      F("value", &Op::value, Counted(Presence::kOptional, 0, 255)),
      F("operations", &Op::operations, Counted(Presence::kOptional, 1, 16)),
      F("magnitude", &Op::magnitude, Counted(Presence::kOptional, 0, 30)),
      F("milliseconds", &Op::milliseconds, Counted(Presence::kOptional, 0, 60000)),
      F("path", &Op::path, {.max_length = 1024, .pattern = kAbsolutePath}),
      F("name", &Op::name, {.max_length = 63, .pattern = kIdentifier}),
      F("parameters", &Op::parameters, {.min_items = 1, .max_items = 32, .max_length = 1024}),
      F("module", &Op::module, {.max_length = 255, .pattern = kPythonModule}),
      F("function", &Op::function, {.max_length = 127, .pattern = kPythonName}),
      F("outputs", &Op::outputs),
      F("also", &Op::also,
        {.min_items = 1, .max_items = 8, .max_length = 63, .pattern = kIdentifier}));
}

constexpr auto FieldsOf(const View*) {
  return std::make_tuple(
      F("name", &View::name,
        {.presence = Presence::kRequired, .max_length = 63, .pattern = kViewName}),
      F("count", &View::count, Counted(Presence::kDefaulted, 1, 64)));
}

constexpr auto FieldsOf(const Model*) {
  constexpr Limits kNames{
      .min_items = 1, .max_items = 256, .max_length = 255, .pattern = kTensorNames};
  return std::make_tuple(F("name", &Model::name, {.max_length = 63, .pattern = kIdentifier}),
                         F("torchScript", &Model::torch_script, Uri(kObjectUri)),
                         F("plugin", &Model::plugin, {.max_length = 1024}),
                         F("weights", &Model::weights, Uri(kObjectUri)),
                         F("exclude", &Model::exclude, kNames),
                         F("freeze", &Model::freeze, kNames));
}

constexpr auto FieldsOf(const Loss*) {
  return std::make_tuple(
      F("name", &Loss::name,
        {.presence = Presence::kDefaulted, .max_length = 63, .only = "CrossEntropy"}),
      F("labelSmoothing", &Loss::label_smoothing, Counted(Presence::kDefaulted, 0, 1)));
}

constexpr auto FieldsOf(const Optimizer*) {
  constexpr Limits kBetas{.presence = Presence::kDefaulted,
                          .min = 0,
                          .max = 1,
                          .below_max = true,
                          .min_items = 2,
                          .max_items = 2};
  return std::make_tuple(
      F("name", &Optimizer::name, kDefaultedField),
      F("learningRate", &Optimizer::learning_rate, AtLeast(0, Presence::kDefaulted)),
      F("momentum", &Optimizer::momentum, Counted(Presence::kDefaulted, 0, 1)),
      F("weightDecay", &Optimizer::weight_decay, AtLeast(0, Presence::kDefaulted)),
      F("betas", &Optimizer::betas, kBetas),
      F("epsilon", &Optimizer::epsilon, Above(0, Presence::kDefaulted)));
}

constexpr auto FieldsOf(const Schedule*) {
  return std::make_tuple(
      F("name", &Schedule::name, kDefaultedField),
      F("warmupSteps", &Schedule::warmup_steps, AtLeast(0, Presence::kDefaulted)),
      F("stepEpochs", &Schedule::step_epochs, AtLeast(1)),
      F("gamma", &Schedule::gamma, Above(0, Presence::kDefaulted)),
      F("minLearningRate", &Schedule::min_learning_rate, AtLeast(0, Presence::kDefaulted)),
      F("scaleLearningRate", &Schedule::scale_learning_rate, kDefaultedField));
}

constexpr auto FieldsOf(const Evaluation*) {
  return std::make_tuple(F("everyEpochs", &Evaluation::every_epochs, AtLeast(1)),
                         F("everySteps", &Evaluation::every_steps, AtLeast(1)));
}

constexpr auto FieldsOf(const Checkpoint*) {
  return std::make_tuple(F("uri", &Checkpoint::uri, Uri(kStorageUri, Presence::kRequired)),
                         F("everySteps", &Checkpoint::every_steps, AtLeast(1)),
                         F("everySeconds", &Checkpoint::every_seconds, AtLeast(1)),
                         F("keep", &Checkpoint::keep, Counted(Presence::kDefaulted, 1, 1000)),
                         F("resume", &Checkpoint::resume, kDefaultedField),
                         F("lock", &Checkpoint::lock, kDefaultedField));
}

constexpr auto FieldsOf(const Parallelism*) {
  return std::make_tuple(
      F("partitions", &Parallelism::partitions, Counted(Presence::kDefaulted, 1, 64)),
      F("microbatches", &Parallelism::microbatches, Counted(Presence::kDefaulted, 1, 1024)));
}

constexpr auto FieldsOf(const Script*) {
  return std::make_tuple(F("command", &Script::command,
                           {.presence = Presence::kRequired,
                            .min_items = 1,
                            .max_items = 256,
                            .max_length = 4096,
                            .may_be_empty = true}),
                         F("workingDirectory", &Script::working_directory, {.max_length = 1024}));
}

constexpr auto FieldsOf(const Training*) {
  return std::make_tuple(
      F("model", &Training::model), F("script", &Training::script),
      F("batchSizePerWorker", &Training::batch_size_per_worker,
        Counted(Presence::kRequired, 1, 1048576)),
      F("inputWindow", &Training::input_window, {.max_length = 7, .pattern = kByteSize}),
      F("epochs", &Training::epochs, AtLeast(1)), F("maxSteps", &Training::max_steps, AtLeast(1)),
      F("lastBatch", &Training::last_batch, kDefaultedField),
      F("loss", &Training::loss, kDefaultedField),
      F("optimizer", &Training::optimizer, kDefaultedField),
      F("schedule", &Training::schedule, kDefaultedField),
      F("precision", &Training::precision, kDefaultedField),
      F("gradientAccumulationSteps", &Training::gradient_accumulation_steps,
        Counted(Presence::kDefaulted, 1, 65536)),
      F("gradientClipNorm", &Training::gradient_clip_norm, Above(0)),
      F("seed", &Training::seed, AtLeast(0, Presence::kDefaulted)),
      F("evaluation", &Training::evaluation), F("checkpoint", &Training::checkpoint),
      F("stopOnNonFinite", &Training::stop_on_non_finite, kDefaultedField),
      F("parallelism", &Training::parallelism, kDefaultedField));
}

constexpr auto FieldsOf(const Output*) {
  return std::make_tuple(F("uri", &Output::uri, Uri(kStorageUri, Presence::kRequired)));
}

constexpr auto FieldsOf(const SecretReference*) {
  return std::make_tuple(
      F("name", &SecretReference::name,
        {.presence = Presence::kRequired, .max_length = 253, .pattern = kSubdomain}));
}

// The job's own, and as many that its operator adds (storage_defaults.h).
inline constexpr Limits kStorageEntries{.max_items = 16, .max_added_items = 16};

constexpr auto FieldsOf(const StoragePrices*) {
  return std::make_tuple(
      F("perThousandGets", &StoragePrices::per_thousand_gets,
        {.max_length = 20, .pattern = kDecimal}),
      F("perGBEgress", &StoragePrices::per_gb_egress, {.max_length = 20, .pattern = kDecimal}));
}

constexpr auto FieldsOf(const StorageAccess*) {
  return std::make_tuple(
      F("prefix", &StorageAccess::prefix, Uri(kStoragePrefix, Presence::kRequired)),
      F("endpoint", &StorageAccess::endpoint, {.max_length = 300, .pattern = kEndpoint}),
      F("region", &StorageAccess::region, {.max_length = 63, .pattern = kIdentifier}),
      F("pathStyle", &StorageAccess::path_style), F("anonymous", &StorageAccess::anonymous),
      F("caBundle", &StorageAccess::ca_bundle, {.max_length = 1024, .pattern = kAbsolutePath}),
      F("secretRef", &StorageAccess::secret_ref), F("prices", &StorageAccess::prices));
}

constexpr auto FieldsOf(const ExitCodes*) {
  return std::make_tuple(
      F("operator", &ExitCodes::op, kRequiredField),
      F("values", &ExitCodes::values,
        {.presence = Presence::kRequired, .min = 1, .max = 255, .min_items = 1, .max_items = 255}));
}

constexpr auto FieldsOf(const FailureRule*) {
  return std::make_tuple(F("action", &FailureRule::action, kRequiredField),
                         F("onExitCodes", &FailureRule::on_exit_codes),
                         F("onReason", &FailureRule::on_reason));
}

constexpr auto FieldsOf(const Role*) {
  constexpr Limits kReplicas = Counted(Presence::kOptional, 0, kMostReplicas);
  return std::make_tuple(
      F("name", &Role::name,
        {.presence = Presence::kRequired, .max_length = 20, .pattern = kRfc1035Label}),
      F("type", &Role::type, kRequiredField),
      F("replicas", &Role::replicas, Counted(Presence::kDefaulted, 0, kMostReplicas)),
      F("minReplicas", &Role::min_replicas, kReplicas),
      F("maxReplicas", &Role::max_replicas, kReplicas),
      F("gpusPerReplica", &Role::gpus_per_replica, Counted(Presence::kOptional, 0, 64)),
      F("pricePerHour", &Role::price_per_hour, {.max_length = 20, .pattern = kDecimal}),
      F("capacity", &Role::capacity), F("restartScope", &Role::restart_scope, kDefaultedField),
      F("failureRules", &Role::failure_rules, {.max_items = 16}),
      F("template", &Role::pod_template, {.open_object = true}));
}

constexpr auto FieldsOf(const RunPolicy*) {
  return std::make_tuple(
      F("suspend", &RunPolicy::suspend, kDefaultedField),
      F("managedBy", &RunPolicy::managed_by, {.max_length = 63, .pattern = kDomainPath}),
      F("startupDeadlineSeconds", &RunPolicy::startup_deadline_seconds,
        AtLeast(1, Presence::kDefaulted)),
      F("activeDeadlineSeconds", &RunPolicy::active_deadline_seconds, AtLeast(1)),
      F("maxWaitSeconds", &RunPolicy::max_wait_seconds, AtLeast(1)),
      F("maxDollars", &RunPolicy::max_dollars, {.max_length = 20, .pattern = kDecimal}),
      F("memberTimeoutSeconds", &RunPolicy::member_timeout_seconds,
        Counted(Presence::kDefaulted, 1, 3600)),
      F("stallTimeoutSeconds", &RunPolicy::stall_timeout_seconds, AtLeast(1)),
      F("stopGraceSeconds", &RunPolicy::stop_grace_seconds, Counted(Presence::kDefaulted, 0, 3600)),
      F("maxRestarts", &RunPolicy::max_restarts, AtLeast(0, Presence::kDefaulted)),
      F("cleanPodPolicy", &RunPolicy::clean_pod_policy, kDefaultedField),
      F("ttlSecondsAfterFinished", &RunPolicy::ttl_seconds_after_finished, AtLeast(0)));
}

constexpr auto FieldsOf(const Network*) {
  return std::make_tuple(F("networkPolicy", &Network::network_policy, kDefaultedField),
                         F("tls", &Network::tls, kDefaultedField));
}

constexpr auto FieldsOf(const Scheduling*) {
  return std::make_tuple(
      F("elasticPriorityClass", &Scheduling::elastic_priority_class,
        {.max_length = 253, .pattern = kSubdomain}),
      F("gang", &Scheduling::gang),
      F("queue", &Scheduling::queue, {.max_length = 253, .pattern = kSubdomain}));
}

constexpr auto FieldsOf(const PodPlacement*) {
  return std::make_tuple(F("zone", &PodPlacement::zone));
}

constexpr auto FieldsOf(const RuleThreshold*) {
  return std::make_tuple(
      F("name", &RuleThreshold::name,
        {.presence = Presence::kRequired, .max_length = 63, .pattern = kIdentifier}),
      F("value", &RuleThreshold::value, Counted(Presence::kRequired, 0, 1e15)));
}

constexpr auto FieldsOf(const InsightRule*) {
  return std::make_tuple(
      F("name", &InsightRule::name,
        {.presence = Presence::kRequired, .max_length = 63, .pattern = kIdentifier}),
      F("action", &InsightRule::action, kDefaultedField),
      F("thresholds", &InsightRule::thresholds, {.min_items = 1, .max_items = 16}));
}

constexpr auto FieldsOf(const Insight*) {
  return std::make_tuple(F("rules", &Insight::rules, {.max_items = 64}));
}

constexpr auto FieldsOf(const Spec*) {
  return std::make_tuple(
      F("dataset", &Spec::dataset, kRequiredField),
      F("pipeline", &Spec::pipeline, {.max_items = 32}),
      F("views", &Spec::views, {.min_items = 1, .max_items = 8}), F("verify", &Spec::verify),
      F("training", &Spec::training, kRequiredField), F("output", &Spec::output),
      F("storage", &Spec::storage, kStorageEntries),
      F("roles", &Spec::roles, {.presence = Presence::kRequired, .min_items = 2, .max_items = 8}),
      F("managedBy", &Spec::managed_by, {.max_length = 63, .pattern = kDomainPath}),
      F("runPolicy", &Spec::run_policy, kDefaultedField),
      F("network", &Spec::network, kDefaultedField),
      F("autoscaling", &Spec::autoscaling, kDefaultedField), F("scheduling", &Spec::scheduling),
      F("placement", &Spec::placement), F("insight", &Spec::insight));
}

// Kubernetes' own keys that we do not read are skipped by the decoder.
constexpr auto FieldsOf(const Metadata*) {
  constexpr Limits kMap{.max_items = 1000, .max_length = 262144};
  return std::make_tuple(
      F("name", &Metadata::name,
        {.presence = Presence::kRequired, .max_length = 38, .pattern = kRfc1035Label}),
      F("namespace", &Metadata::name_space, {.max_length = 63}),
      F("uid", &Metadata::uid, {.max_length = 128}), F("labels", &Metadata::labels, kMap),
      F("annotations", &Metadata::annotations, kMap));
}

}  // namespace hetero::api
