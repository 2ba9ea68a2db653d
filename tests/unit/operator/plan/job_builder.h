#pragma once

#include <string>
#include <utility>

#include "api/hetero_training_job.h"
#include "api/labels.h"

namespace hetero::plan {

// The job of the tests: `vit` with roles head, cpu and gpu. Reads as a sentence:
// Job().Gpus(2).MaxRestarts(1).
class Job {
 public:
  Job() {
    job_.metadata.name = "vit";
    job_.metadata.name_space = "team";
    job_.metadata.uid = "0123456789-job";
    job_.spec.training.model.name = "mlp";
    for (const auto& [name, type] :
         {std::pair("head", api::RoleType::kHead), std::pair("cpu", api::RoleType::kCpuWorker),
          std::pair("gpu", api::RoleType::kGpuWorker)}) {
      api::Role& role = job_.spec.roles.emplace_back();
      role.name = name;
      role.type = type;
    }
    Cpus(1).Gpus(2);
  }

  Job& Cpus(int replicas, int min = -1) {
    role(1).replicas = replicas;
    role(1).min_replicas = min < 0 ? replicas : min;
    return *this;
  }
  Job& Autoscale(int min, int max) {
    job_.spec.autoscaling = api::Switch::kEnabled;
    role(1).min_replicas = min;
    role(1).max_replicas = max;
    return *this;
  }
  Job& Gpus(int replicas) {
    role(2).replicas = replicas;
    return *this;
  }
  Job& Scope(int index, api::RestartScope scope) {
    role(index).restart_scope = scope;
    return *this;
  }
  Job& Rule(int index, api::FailureAction action, api::ExitCodes codes) {
    api::FailureRule& rule = role(index).failure_rules.emplace_back();
    rule.action = action;
    rule.on_exit_codes = std::move(codes);
    return *this;
  }
  Job& Rule(int index, api::FailureAction action, api::FailureReason reason) {
    api::FailureRule& rule = role(index).failure_rules.emplace_back();
    rule.action = action;
    rule.on_reason = reason;
    return *this;
  }
  Job& MaxRestarts(int count) {
    policy().max_restarts = count;
    return *this;
  }
  Job& Suspend(bool suspend = true) {
    policy().suspend = suspend;
    return *this;
  }
  Job& CleanPods(api::CleanPodPolicy clean) {
    policy().clean_pod_policy = clean;
    return *this;
  }
  Job& Ttl(int seconds) {
    policy().ttl_seconds_after_finished = seconds;
    return *this;
  }
  Job& MaxWait(int64_t seconds) {
    policy().max_wait_seconds = seconds;
    return *this;
  }
  Job& Zone(api::ZoneChoice zone) {
    job_.spec.placement.emplace().zone = zone;
    return *this;
  }
  // Of the roles head, cpu and gpu, in dollars an hour; empty: none.
  Job& Prices(const std::string& head, const std::string& cpu, const std::string& gpu) {
    role(0).price_per_hour = head;
    role(1).price_per_hour = cpu;
    role(2).price_per_hour = gpu;
    return *this;
  }
  Job& MaxDollars(std::string dollars) {
    policy().max_dollars = std::move(dollars);
    return *this;
  }
  Job& ActiveDeadline(int64_t seconds) {
    policy().active_deadline_seconds = seconds;
    return *this;
  }
  Job& StartupDeadline(int seconds) {
    policy().startup_deadline_seconds = seconds;
    return *this;
  }
  Job& StallTimeout(int seconds) {
    policy().stall_timeout_seconds = seconds;
    return *this;
  }
  Job& ManagedBy(std::string manager) {
    job_.spec.managed_by = std::move(manager);
    return *this;
  }
  Job& ManagedByOfOld(std::string manager) {
    policy().managed_by = std::move(manager);
    return *this;
  }
  Job& Label(const std::string& name, std::string value) {
    job_.metadata.labels[name] = std::move(value);
    return *this;
  }
  Job& Queue(std::string queue) {
    job_.metadata.labels[api::kQueueLabel] = std::move(queue);
    return *this;
  }
  Job& ElasticClass(std::string priority_class) {
    job_.spec.scheduling.emplace().elastic_priority_class = std::move(priority_class);
    return *this;
  }
  Job& Gang(api::GangScheduler gang) {
    job_.spec.scheduling.emplace().gang = gang;
    return *this;
  }
  Job& Network(api::Switch tls, api::Switch network_policy) {
    job_.spec.network.tls = tls;
    job_.spec.network.network_policy = network_policy;
    return *this;
  }

  api::Role& role(int index) { return job_.spec.roles[index]; }
  api::RunPolicy& policy() { return job_.spec.run_policy; }
  const api::HeteroTrainingJob& job() const { return job_; }

 private:
  api::HeteroTrainingJob job_;
};

}  // namespace hetero::plan
