#include "runtime/head/fault_log.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hetero::head {

std::optional<size_t> FindFault(const JobRecord& record, const std::string& member,
                                int64_t incarnation) {
  if (incarnation == 0) return std::nullopt;
  for (size_t i = record.faults.size(); i-- > 0;) {
    const Fault& fault = record.faults[i];
    if (fault.member != member || fault.incarnation != incarnation) continue;
    if (fault.open() || fault.over) return i;
  }
  return std::nullopt;
}

std::optional<size_t> FindOpenFault(const JobRecord& record, const std::string& member) {
  for (size_t i = record.faults.size(); i-- > 0;) {
    if (record.faults[i].member == member && record.faults[i].open()) return i;
  }
  return std::nullopt;
}

size_t OpenFault(const std::string& member, int64_t incarnation, const std::string& what,
                 Moment now, JobRecord& record) {
  if (const auto known = FindFault(record, member, incarnation)) return *known;
  if (record.faults.size() >= kMostFaults) {
    ++record.past.faults_left_out;
    if (record.faults.size() == kMostFaults) {
      record.faults.push_back({.time = now.wall,
                               .since = now.steady,
                               .what = "more faults than the head keeps",
                               .over = true});
    }
    return kMostFaults;
  }
  record.faults.push_back({.time = now.wall,
                           .since = now.steady,
                           .what = what,
                           .member = member,
                           .incarnation = incarnation});
  return record.faults.size() - 1;
}

void CloseFault(size_t index, const std::string& how, bool over, Moment now, JobRecord& record) {
  Fault& fault = record.faults[index];
  if (!fault.open()) return;
  fault.recovery_seconds = std::max(0.0, base::ToSeconds(now.steady - fault.since));
  fault.over = over;
  absl::StrAppend(&fault.what, "; ", how);
}

}  // namespace hetero::head
