#include "runtime/local/processes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/operators.h"
#include "api/process_environment.h"
#include "api/role_type.h"
#include "runtime/local/gpus.h"

namespace hetero::local {
namespace {

namespace environment = api::environment;
constexpr char kCeilingProbeSteps[] = "10";
constexpr char kCreated[] = "--created-unix-ns";

std::vector<std::string> HeadCommand(const ProcessPlanOptions& options) {
  std::vector<std::string> command = {options.runtime_program,
                                      "head",
                                      "--job",
                                      options.job_file,
                                      "--listen",
                                      HeadAddress(options),
                                      "--output",
                                      options.output_folder,
                                      kCreated,
                                      absl::StrCat(options.created_unix_ns),
                                      "--history",
                                      HistoryFile(options)};
  if (options.input_only) command.push_back("--input-only");
  // The launcher's own socket: a head that takes over serves under the same address, and whoever
  // calls before there is one waits.
  if (options.page_socket >= 0) {
    command.insert(command.end(), {"--page-listen", absl::StrCat("fd:", options.page_socket)});
  }
  return command;
}

std::vector<std::string> WorkerCommand(const ProcessPlanOptions& options, const std::string& name) {
  return {options.runtime_program, "cpu-worker", "--listen",
          absl::StrCat("unix:", options.socket_folder, "/", name, ".sock")};
}

std::vector<std::string> AgentCommand(const ProcessPlanOptions& options, const api::Role& role,
                                      const std::string& threads) {
  std::vector<std::string> command = {options.runtime_program, "agent", "--output",
                                      options.output_folder};
  if (options.attach) {
    command.insert(command.end(), {"--attach", AttachedSocket(options)});
  } else {
    command.insert(command.end(), {"--working-directory", options.working_directory, "--sockets",
                                   options.socket_folder, "--ranks",
                                   absl::StrCat(role.ranks_per_replica()), "--threads", threads});
  }
  return command;
}

std::vector<std::string> RankCommand(const api::HeteroTrainingJob& job,
                                     const ProcessPlanOptions& options, const api::Role& role) {
  const int32_t ranks = std::max(1, job.spec.world_size());
  const std::string threads = absl::StrCat(std::max(1, options.cores / ranks));
  std::vector<std::string> command;
  if (options.input_only) {
    command = {options.runtime_program, "consumer"};
  } else if (job.spec.training.script) {
    command = AgentCommand(options, role, threads);
  } else {
    // The trainers' cores are the CPU workers' here: there is nothing to share.
    command = {options.trainer_program, "--threads",     threads,     "--output",
               options.output_folder,   "--local-share", "LastResort"};
    if (const int gpus = role.gpus_per_replica.value_or(1); gpus > 0) {
      command.insert(command.end(), {"--gpus", absl::StrCat(gpus)});
    }
    if (options.ceiling_probe) {
      command.insert(command.end(), {"--ceiling-probe", kCeilingProbeSteps});
    }
  }
  if (!options.dump_stream_folder.empty()) {
    command.insert(command.end(), {"--dump-stream", options.dump_stream_folder});
  }
  return command;
}

ProcessPlan PlanOne(const api::HeteroTrainingJob& job, const ProcessPlanOptions& options,
                    const api::Role& role, int32_t index) {
  ProcessPlan plan{.role = role.name,
                   .type = role.type,
                   .index = index,
                   .gang = role.restart_scope == api::RestartScope::kGang};
  plan.name = role.type == api::RoleType::kHead ? role.name : absl::StrCat(role.name, "-", index);
  switch (role.type) {
    case api::RoleType::kHead:
      plan.command = HeadCommand(options);
      if (options.page_socket >= 0) plan.inherited.push_back(options.page_socket);
      break;
    case api::RoleType::kCpuWorker:
      plan.command = WorkerCommand(options, plan.name);
      if (api::HasPython(job.spec.pipeline)) {
        // As for scripts, modules beside the manifest are found.
        plan.environment.emplace_back(
            "PYTHONPATH", options.python_path.empty()
                              ? options.working_directory
                              : absl::StrCat(options.working_directory, ":", options.python_path));
      }
      break;
    case api::RoleType::kGpuWorker:
      plan.command = RankCommand(job, options, role);
      // Idle OpenMP threads would otherwise spin on cores that preprocessing needs.
      plan.environment.emplace_back("OMP_WAIT_POLICY", "passive");
      if (job.spec.training.script && !options.python_path.empty()) {
        plan.environment.emplace_back("PYTHONPATH", options.python_path);
      }
      break;
  }
  for (auto& [key, value] : std::initializer_list<std::pair<std::string, std::string>>{
           {environment::kJobName, job.metadata.name},
           {environment::kJobUid, absl::StrCat(options.created_unix_ns)},
           {environment::kRole, role.name},
           {environment::kRoleType, api::NameOf(role.type)},
           {environment::kIndex, absl::StrCat(index)},
           {environment::kHeadAddress, HeadAddress(options)},
           {environment::kPodIp, "127.0.0.1"},
           {environment::kTls, environment::kPlainText},
           {environment::kLastWords, options.socket_folder}}) {
    plan.environment.emplace_back(key, value);
  }
  return plan;
}

}  // namespace

void SetCreation(int64_t unix_ns, ProcessPlan& plan) {
  const auto flag = std::find(plan.command.begin(), plan.command.end(), kCreated);
  if (flag != plan.command.end()) *std::next(flag) = absl::StrCat(unix_ns);
}

std::string HistoryFile(const ProcessPlanOptions& options) {
  return absl::StrCat(options.output_folder, "/history.txt");
}

std::string AttachedSocket(const ProcessPlanOptions& options) {
  return absl::StrCat(options.socket_folder, "/stream.sock");
}

std::string HeadAddress(const ProcessPlanOptions& options) {
  return absl::StrCat("unix:", options.socket_folder, "/head.sock");
}

ProcessPlan PlanCpuWorker(const api::HeteroTrainingJob& job, const ProcessPlanOptions& options,
                          const api::Role& role, int32_t index) {
  return PlanOne(job, options, role, index);
}

std::vector<ProcessPlan> PlanProcesses(const api::HeteroTrainingJob& job,
                                       const ProcessPlanOptions& options) {
  std::vector<ProcessPlan> plans;
  GpuShares shares(options.usable_gpus);
  for (const api::RoleType type :
       {api::RoleType::kHead, api::RoleType::kCpuWorker, api::RoleType::kGpuWorker}) {
    for (const api::Role& role : job.spec.roles) {
      if (role.type != type) continue;
      for (int32_t index = 0; index < role.replicas; ++index) {
        plans.push_back(PlanOne(job, options, role, index));
        if (type != api::RoleType::kGpuWorker) continue;
        const std::string gpus = shares.Next(role.gpus_per_replica.value_or(1));
        if (!gpus.empty()) plans.back().environment.emplace_back("CUDA_VISIBLE_DEVICES", gpus);
      }
    }
  }
  return plans;
}

}  // namespace hetero::local
