#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "cli/job_view.h"
#include "cli/render.h"

// The parts of a screen that status and report share. Each ends with a line end, or is empty.
namespace hetero::cli {

// Which pod failed first, and its last words.
std::string RenderFailure(const JobView& view, const Style& style);
// steps, loss, accuracy, ... one a line; only what there is.
std::string RenderResult(const api::JobResult& result, const Style& style);
// What rules have found in the job and what to change, causes first.
std::string RenderFindings(const JobView& view, const Style& style);
// The operator's words on what the job has come to, or on what it waits for.
std::string RenderMessages(const JobView& view, const Style& style);

// Why what follows is as old as it is, and an empty line.
std::string RenderTrouble(const absl::Status& trouble, base::Duration old, const Style& style);

}  // namespace hetero::cli
