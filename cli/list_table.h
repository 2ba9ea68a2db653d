#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/job_view.h"
#include "cli/render.h"

namespace hetero::cli {

struct ListStyle {
  Style style;
  bool namespaces = false;  // a column for them
  bool wide = false;        // more columns
};

// The heading and one line for each job, without line ends. A job that is not training has what it
// waits for, or what it came to, in the place of its figures. Pure.
std::vector<std::string> ListLines(const std::vector<JobView>& views, base::WallTime now,
                                   const ListStyle& style);

}  // namespace hetero::cli
