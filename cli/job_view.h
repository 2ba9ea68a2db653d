#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "api/job_status.h"
#include "base/clock.h"

// What the command line shows of one job, out of the object as the API server has it. Pure.
namespace hetero::cli {

// Members of one type.
struct MemberCount {
  int64_t registered = 0;
  int64_t wanted = 0;
  std::string ToString() const { return std::to_string(registered) + "/" + std::to_string(wanted); }
};

struct JobView {
  std::string name_space;
  std::string name;
  std::string uid;
  base::WallTime created;
  bool deleting = false;
  int64_t generation = 0;
  bool suspend = false;
  std::string managed_by;   // another controller's; empty: ours
  std::string max_dollars;  // runPolicy.maxDollars; empty: no budget
  std::string output_uri;   // empty: none asked for
  std::string queue;        // LocalQueue of Kueue; empty: none
  std::string place;        // "3rd of 7 in team", of a job that is queued; empty: not known
  std::string remark;       // in the place of all that else would be said of it; usually empty
  int64_t gpus = 0;         // of all GPU workers
  MemberCount cpu_workers, gpu_workers;
  api::JobStatus status;

  // The most telling condition that is True ("Running"), "Waiting" before there is one.
  std::string state() const;
};

// Objects of any shape are read; kInvalidArgument names the job and the field of a status that
// cannot be.
absl::StatusOr<JobView> ViewOf(const nlohmann::json& object);

}  // namespace hetero::cli
