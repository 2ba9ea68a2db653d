#pragma once

#include "api/field_table.h"
#include "api/hetero_training_job.h"
#include "api/role_type.h"

// How each enum is spelt in the manifest, in the order of crds/. Internal to api.
namespace hetero::api {

template <typename E, size_t N>
using NamedValues = std::array<std::pair<E, std::string_view>, N>;

#define HETERO_ENUM(Type, count, ...)                                              \
  template <>                                                                      \
  struct EnumNames<Type> {                                                         \
    using enum Type;                                                               \
    static constexpr NamedValues<Type, count> Values() { return {{__VA_ARGS__}}; } \
  }

HETERO_ENUM(DatasetFormat, 12, {kAuto, "Auto"}, {kSynthetic, "Synthetic"}, {kIdx, "IDX"},
            {kCifar10, "CIFAR10"}, {kCifar100, "CIFAR100"}, {kImageFolder, "ImageFolder"},
            {kTfRecord, "TFRecord"}, {kRecordIo, "RecordIO"}, {kWebDataset, "WebDataset"},
            {kMds, "MDS"}, {kParquet, "Parquet"}, {kManifest, "Manifest"});
HETERO_ENUM(IndexBuild, 3, {kAuto, "Auto"}, {kAlways, "Always"}, {kNever, "Never"});
HETERO_ENUM(LabelType, 4, {kClass, "Class"}, {kInt64, "Int64"}, {kFloat32, "Float32"},
            {kNone, "None"});
HETERO_ENUM(ShuffleMode, 3, {kFull, "Full"}, {kBlock, "Block"}, {kNone, "None"});
HETERO_ENUM(Placement, 3, {kAuto, "Auto"}, {kCpuWorker, "CPUWorker"}, {kTrainer, "Trainer"});
HETERO_ENUM(ElementType, 2, {kUint8, "Uint8"}, {kFloat32, "Float32"});
HETERO_ENUM(Interpolation, 2, {kNearest, "Nearest"}, {kBilinear, "Bilinear"});
HETERO_ENUM(LastBatch, 2, {kKeep, "Keep"}, {kDrop, "Drop"});
HETERO_ENUM(OptimizerKind, 3, {kSgd, "SGD"}, {kAdam, "Adam"}, {kAdamW, "AdamW"});
HETERO_ENUM(ScheduleKind, 3, {kConstant, "Constant"}, {kStep, "Step"}, {kCosine, "Cosine"});
HETERO_ENUM(LearningRateScaling, 2, {kNone, "None"}, {kLinearWithWorldSize, "LinearWithWorldSize"});
HETERO_ENUM(Precision, 2, {kFp32, "FP32"}, {kBf16, "BF16"});
HETERO_ENUM(Verification, 3, {kWarn, "Warn"}, {kStrict, "Strict"}, {kDisabled, "Disabled"});
HETERO_ENUM(NonFiniteAction, 2, {kFail, "Fail"}, {kSkip, "Skip"});
HETERO_ENUM(ResumeMode, 2, {kAuto, "Auto"}, {kNever, "Never"});
HETERO_ENUM(CheckpointLocking, 2, {kExclusive, "Exclusive"}, {kNone, "None"});
HETERO_ENUM(RoleType, 3, {kHead, kHeadType}, {kCpuWorker, kCpuWorkerType},
            {kGpuWorker, kGpuWorkerType});
HETERO_ENUM(Capacity, 3, {kSpot, "Spot"}, {kOnDemand, "OnDemand"}, {kAny, "Any"});
HETERO_ENUM(ZoneChoice, 3, {kPrefer, "Prefer"}, {kSame, "Same"}, {kAny, "Any"});
HETERO_ENUM(RestartScope, 2, {kPod, "Pod"}, {kGang, "Gang"});
HETERO_ENUM(FailureAction, 4, {kFailJob, "FailJob"}, {kRestartGang, "RestartGang"},
            {kRestartPod, "RestartPod"}, {kIgnore, "Ignore"});
HETERO_ENUM(ExitCodeOperator, 2, {kIn, "In"}, {kNotIn, "NotIn"});
HETERO_ENUM(FailureReason, 3, {kOomKilled, "OOMKilled"}, {kEvicted, "Evicted"},
            {kDisruption, "Disruption"});
HETERO_ENUM(GangScheduler, 4, {kNone, "None"}, {kVolcano, "Volcano"},
            {kCoscheduling, "Coscheduling"}, {kNative, "Native"});
HETERO_ENUM(CleanPodPolicy, 3, {kAll, "All"}, {kRunning, "Running"}, {kNone, "None"});
HETERO_ENUM(RuleAction, 2, {kReport, "Report"}, {kIgnore, "Ignore"});
HETERO_ENUM(Switch, 2, {kEnabled, "Enabled"}, {kDisabled, "Disabled"});

#undef HETERO_ENUM

// The names stand in the operators' rows (operators.h).
template <>
struct EnumNames<OperatorKind> {
  static const std::vector<std::pair<OperatorKind, std::string_view>>& Values();
};

}  // namespace hetero::api
