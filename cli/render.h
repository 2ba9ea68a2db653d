#pragma once

#include <string>

#include "base/clock.h"
#include "cli/job_view.h"

// Text for a person, out of what is known of a job. Pure: same arguments, same bytes.
namespace hetero::cli {

struct Style {
  int width = 80;       // columns; 0: no limit, nothing is cut
  bool colour = false;  // ANSI
};

// One screen, what matters most first: state, what hinders the job, progress, failure, what to
// change, result, roles, conditions. Ends with a line end; no line is longer than the width.
std::string RenderStatus(const JobView& view, base::WallTime now, const Style& style);

// One line, for logs: "2026-01-01T12:00:05Z Running step 40/1000 12.5 samples/s registered 4/4".
std::string RenderLine(const JobView& view, base::WallTime now);

// The result of a finished job and where its report is.
std::string RenderReport(const JobView& view, const Style& style);

// Parts of these screens.
// Name, state, age, registered, restarts.
std::string RenderHead(const JobView& view, base::WallTime now, const Style& style);
// What the job's own words do not say, such as that nobody has seen it; usually empty.
std::string RenderHints(const JobView& view, base::WallTime now, const Style& style);
// A bar, and while the job runs its rates; empty before the first step.
std::string RenderProgress(const JobView& view, base::WallTime now, const Style& style);
// The state in the colour that it has.
std::string Coloured(const std::string& state, const Style& style);
// The first message that tells why the job is where it is: "Unschedulable: vit-cpu-1: 0/3 nodes".
std::string Telling(const JobView& view);

// "1h02m", "45s".
std::string FormatDuration(base::Duration duration);

}  // namespace hetero::cli
