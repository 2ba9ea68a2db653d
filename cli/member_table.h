#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/hetero_training_job.h"
#include "cli/job_view.h"
#include "cli/render.h"

namespace hetero::cli {

// One pod of a job, and what is known of what it does.
struct Member {
  api::RoleType type = api::RoleType::kCpuWorker;
  std::string role;
  int64_t index = 0;
  std::string pod;
  std::string node;   // empty: it has none yet
  std::string state;  // "Running", "ImagePullBackOff", "Unschedulable", "Terminating", ...
  std::optional<double> cores;               // in use
  std::optional<double> memory_bytes;        // likewise
  bool memory_is_peak = false;               // not now, but at most so far
  std::optional<double> samples_per_second;  // that it trains with, or prepares
  std::optional<double> wait_percent;        // of a GPU worker: its time without data
  std::optional<int64_t> restarts;
  std::string member() const { return role + "-" + std::to_string(index); }
};

// Of the pods of a job, in the order of its roles and replicas. Objects of any shape are read.
// Pure.
std::vector<Member> MembersOf(const nlohmann::json& job, const std::vector<nlohmann::json>& pods);

// What is known of a job as a whole.
struct TopView {
  JobView job;
  std::vector<Member> members;
  std::string verdict;  // the head's own words on what limits the job; empty: none yet
  std::string missing;  // why figures of the pods are missing; empty: none are
};

// State, progress, what limits the job, and a line for each pod. SHARE is of what the members of
// the same type do together. Pure.
std::string RenderTop(const TopView& view, base::WallTime now, const Style& style);

}  // namespace hetero::cli
