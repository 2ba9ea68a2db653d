#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/head/job_record.h"

// The record's faults. One is told by its member and the incarnation of the process that it struck:
// whoever tells of it a second time (another who saw it, or the same one to the next head) adds
// nothing. Pure.
namespace hetero::head {

// How most faults end.
inline constexpr char kReplaced[] = "replaced by a new process";

// The fault of that process that has not ended, or has ended with it; empty: this is news. Without
// an incarnation nothing is known.
std::optional<size_t> FindFault(const JobRecord& record, const std::string& member,
                                int64_t incarnation);
// The newest fault of `member` that is open, whichever process it struck.
std::optional<size_t> FindOpenFault(const JobRecord& record, const std::string& member);

// Beyond them one entry stands for all others.
inline constexpr size_t kMostFaults = 10'000;

// Enters a fault that begins now, unless it is known; its index, or that of the entry for all
// others.
size_t OpenFault(const std::string& member, int64_t incarnation, const std::string& what,
                 Moment now, JobRecord& record);
// The fault ends now: `how` is added to what it says. With `over` the process is gone, and another
// has its place.
void CloseFault(size_t index, const std::string& how, bool over, Moment now, JobRecord& record);

}  // namespace hetero::head
