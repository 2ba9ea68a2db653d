#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.h"
#include "cli/job_view.h"

// Text for a person, out of what is known of a job. Pure: same arguments, same bytes.
namespace hetero::cli {

struct Style {
  int width = 80;       // columns; longer messages are cut
  bool colour = false;  // ANSI
};

// One screen: state, progress, roles, conditions, failure, result. Ends with a line end.
std::string RenderStatus(const JobView& view, base::WallTime now, const Style& style);

// One line, for logs: "12:00:05 Running step 40/1000 12.5 samples/s registered 4/4".
std::string RenderLine(const JobView& view, base::WallTime now);

// The result of a finished job and where its report lies.
std::string RenderReport(const JobView& view);

// "1h02m", "45s".
std::string FormatDuration(base::Duration duration);

}  // namespace hetero::cli
