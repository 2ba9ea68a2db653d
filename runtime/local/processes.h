#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/hetero_training_job.h"

namespace hetero::local {

// One process of a local job: what the operator would run as a pod.
struct ProcessPlan {
  std::string name;  // "head", "cpu-0", "gpu-1"
  std::string role;  // role name of the manifest
  api::RoleType type = api::RoleType::kHead;
  int32_t index = 0;
  bool gang = false;                 // when it dies, all processes are started again
  std::vector<std::string> command;  // program and arguments
  std::vector<std::pair<std::string, std::string>> environment;  // added to the launcher's own
  std::vector<int> inherited;  // descriptors of the launcher's that it gets under the same numbers
};

struct ProcessPlanOptions {
  std::string runtime_program;  // hetero-runtime
  std::string trainer_program;  // hetero-trainer
  std::string socket_folder;    // private, short (a unix socket's path has at most 107 characters)
  std::string job_file;         // the manifest after overrides
  std::string output_folder;
  std::string dump_stream_folder;  // empty: no dump
  std::string working_directory;   // of scripts
  std::string python_path;         // PYTHONPATH of scripts; empty: the launcher's own
  int64_t created_unix_ns = 0;     // when the job was started
  bool input_only = false;
  bool ceiling_probe = false;
  bool attach = false;                   // the script is started by somebody else
  int32_t cores = 1;                     // of this machine, shared by all processes
  std::vector<std::string> usable_gpus;  // see gpus.h; replicas get theirs in the order of roles
  int page_socket = -1;                  // that listens, for the head's pages; -1: none
};

// The processes of `job` in start order: head, CPU workers, trainers. Pure.
std::vector<ProcessPlan> PlanProcesses(const api::HeteroTrainingJob& job,
                                       const ProcessPlanOptions& options);

// One CPU worker, as in the list of PlanProcesses() or beyond its replicas. Pure.
ProcessPlan PlanCpuWorker(const api::HeteroTrainingJob& job, const ProcessPlanOptions& options,
                          const api::Role& role, int32_t index);

// Tells the head of `plan` when the job began, by the wall clock of now.
void SetCreation(int64_t unix_ns, ProcessPlan& plan);

// Where a head leaves what the next one has to know; of one run only.
std::string HistoryFile(const ProcessPlanOptions& options);

// Where a script that is started by somebody else finds its stream.
std::string AttachedSocket(const ProcessPlanOptions& options);

// gRPC target of the head that PlanProcesses() starts.
std::string HeadAddress(const ProcessPlanOptions& options);

}  // namespace hetero::local
