#pragma once

#include <sys/types.h>

#include <vector>

namespace hetero::agent {

// All processes below `root`, as /proc shows them now: its children, theirs, and so on. Without
// `root` itself. Empty where /proc cannot be read.
std::vector<pid_t> Descendants(pid_t root);

// CPU time that `root` and all processes below it have used, and those below that have ended and
// were waited for. Never falls while `root` lives; 0 where /proc cannot be read.
double CpuSecondsOf(pid_t root);

// Sends `signal` to each of them; how many there were.
int SignalDescendants(pid_t root, int signal);

}  // namespace hetero::agent
