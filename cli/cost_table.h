#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/job_view.h"
#include "cli/list_table.h"

// What jobs have cost, as status.cost says. Pure.
namespace hetero::cli {

// One job: a table by role and what else is to say. A job without status.cost: why it has none.
std::string CostOfJob(const JobView& view, base::WallTime now, const Style& style);

// A heading, one line for each job and their sum.
std::string CostOfJobs(const std::vector<JobView>& views, const ListStyle& style);

// For programs: {"namespace", "name", "cost": {...}} with status.cost but for what the operator
// alone needs; "cost" is null where there is none.
nlohmann::json CostJson(const JobView& view);
// {"items": [...], "dollars": of all, "uncertainDollars", "jobsWithoutPrice"}.
nlohmann::json CostsJson(const std::vector<JobView>& views);

}  // namespace hetero::cli
