#include "runtime/head/verdict.h"

#include "absl/strings/str_format.h"

namespace hetero::head {
namespace {

constexpr double kInputBoundPercent = 10;

}  // namespace

std::string Verdict(const JobRecord& record) {
  const MemberRecord* first = FindRank(record, 0);
  if (record.input_only || first == nullptr || first->progress.step() == 0) return "";
  const double waiting = first->progress.data_wait_percent();
  return absl::StrFormat("%s: %.0f %% of each step waits for data",
                         waiting >= kInputBoundPercent ? "input-bound" : "compute-bound", waiting);
}

}  // namespace hetero::head
