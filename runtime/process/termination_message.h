#pragma once

#include <optional>
#include <string>

#include "api/job_status.h"
#include "hetero/v1/membership.pb.h"
#include "hetero/v1/status.pb.h"

// The last words of a pod, which the operator reads when nobody listened to the head at the end.
namespace hetero::process {

// The file named by HETERO_TERMINATION_LOG; empty when unset.
std::string TerminationLogFromEnvironment();

// Overwrites `path` in place (Kubernetes mounts that very file). An empty path writes nothing; a
// failure is only logged: how the job ended has other ways to be heard.
void WriteTerminationMessage(const std::string& path, const api::Verdict& verdict);

// What an ended job came to. Empty for a job that was stopped or still runs: a pod that is told to
// go says nothing about the training.
std::optional<api::Verdict> VerdictOf(const v1::JobStatus& status, const std::string& job_name);

// What rank 0 knows of a training that it has completed.
api::Verdict VerdictOf(const v1::Progress& progress,
                       const std::optional<v1::EvaluationResult>& evaluation);

}  // namespace hetero::process
