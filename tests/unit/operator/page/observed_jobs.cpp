#include "tests/unit/operator/page/observed_jobs.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "api/labels.h"

namespace hetero::jobs_page {

using api::ConditionStatus;
using api::ConditionType;

plan::ObservedJob TrainingJob(const std::string& name_space, const std::string& name) {
  plan::ObservedJob job;
  job.job.metadata = {.name = name, .name_space = name_space, .uid = name_space + "/" + name};
  job.job.spec.roles = {{.name = "boss", .type = api::RoleType::kHead},
                        {.name = "gpu", .type = api::RoleType::kGpuWorker}};
  job.created = kCreated;
  job.resource_version = "1";
  job.status.observed_generation = 1;
  job.status.attempt = 1;
  job.status.registered = "3/3";
  SetTrue(job, ConditionType::kRunning, "Training", "");
  job.status.progress = api::JobProgress{.epoch = 1,
                                         .step = 400,
                                         .total_steps = 1000,
                                         .samples_per_second = 1234.567,
                                         .data_wait_percent = 2.5,
                                         .loss = 0.5,
                                         .eta_seconds = 600,
                                         .last_update_time = kCreated};
  return job;
}

void SetTrue(plan::ObservedJob& job, ConditionType type, const std::string& reason,
             const std::string& message) {
  auto& conditions = job.status.conditions;
  conditions.insert(conditions.begin(), {.type = type,
                                         .status = ConditionStatus::kTrue,
                                         .observed_generation = 1,
                                         .last_transition_time = kCreated,
                                         .reason = reason,
                                         .message = message});
}

api::JobFinding InputBound() {
  return {
      .rule = "InputBound",
      .message = "Ranks waited for data 38 % of the last 200 steps; CPU workers were the limit.",
      .remedy = "Add two replicas to role cpu.",
      .field = "roles[1].replicas",
      .member = "",
      .seconds = 912.345,
      .dollars = 3.21987,
      .since = kCreated,
      .active = true};
}

namespace {

void End(plan::ObservedJob& job, ConditionType type, const std::string& message) {
  job.status.conditions.clear();
  SetTrue(job, type, type == ConditionType::kFailed ? "TrainingFailed" : "TrainingFinished",
          message);
}

void MakeOdd(plan::ObservedJob& job, int number) {
  switch (number % 10) {
    case 0:
      return End(job, ConditionType::kFailed,
                 "rank 3 on node gpu-17 ended with exit code 1 (OOMKilled)\nmuch more");
    case 1:
      job.job.metadata.labels[api::kQueueLabel] = "team-queue";
      job.status.conditions.clear();
      job.status.progress.reset();
      return SetTrue(job, ConditionType::kQueued, "Pending",
                     "couldn't assign flavors to pod set gpu: insufficient unused quota for "
                     "nvidia.com/gpu in flavor a100, 8 more needed");
    case 2:
      job.status.progress->data_wait_percent = 38;
      job.status.findings = {InputBound()};
      return;
    case 3:
      job.status.conditions.clear();
      job.status.progress.reset();
      return SetTrue(job, ConditionType::kPodsCreated, "AllCreated",
                     "team-cpu-1: 0/40 nodes are available: 40 Insufficient cpu.");
    case 4:
      return End(job, ConditionType::kSucceeded, "10,000 steps, accuracy 0.93");
    case 5:
      job.status.findings = {InputBound()};
      job.status.findings.front().rule = "CheckpointStall";
      return;
    default:
      return;
  }
}

}  // namespace

plan::ObservedJob PlayedJob(int number) {
  plan::ObservedJob job = TrainingJob(absl::StrCat("team-", number % 7),
                                      absl::StrFormat("vit-large-sweep-%04d", number));
  job.created = kCreated + std::chrono::minutes(number);
  job.status.progress->step = 100 + number % 800;
  job.status.progress->samples_per_second = 800 + number;
  job.status.cost = api::JobCost{
      .dollars = 12.5 + number, .waiting_dollars = 1.25 + number % 11, .as_of = kCreated};
  MakeOdd(job, number);
  return job;
}

}  // namespace hetero::jobs_page
