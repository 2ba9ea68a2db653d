#pragma once

#include <string>

namespace hetero::bench {

// Jobs of four pods, from the first created to the last pod gone, with the writes of the operator
// recorded out of the API server's audit log. Exit code.
int RunManyJobs(int jobs, const std::string& recording_file, const std::string& audit_log,
                int idle_seconds);
// The same writes by a plain client of 16 threads, on a fresh API server. Exit code.
int ReplayManyJobs(const std::string& recording_file);

}  // namespace hetero::bench
