#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/integration/support/program_run.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {

inline constexpr int kScriptSteps = 16;  // 512 samples, two ranks of 32, two epochs

// A job of two ranks that run tests/integration/local/scripts/script.py with these arguments;
// `settings` as in --set.
class ScriptRun {
 public:
  explicit ScriptRun(const std::vector<std::string>& arguments = {},
                     const std::vector<std::string>& settings = {},
                     const std::vector<std::string>& command = {});

  LocalRun& local() { return *local_; }
  ProgramResult Wait(std::chrono::seconds deadline = std::chrono::seconds(60)) {
    return local_->Wait(deadline);
  }
  nlohmann::json report() const { return local_->report(); }
  // A file of the script's folder; empty when there is none.
  std::string Read(const std::string& name) const;
  bool WaitForFile(const std::string& name, const std::string& text = "",
                   std::chrono::seconds deadline = std::chrono::seconds(60)) const;
  std::string path(const std::string& name) const { return folder_ / name; }
  // By step, of both ranks: what the last script that did the step received.
  std::map<int, std::vector<int>> Samples() const;

 private:
  TemporaryFolder folder_;
  std::unique_ptr<LocalRun> local_;
};

// The stream's digest of the same job with --input-only: no agent and no script.
const std::string& DigestWithoutScript();

// The job succeeded, its digest is DigestWithoutScript(), and each sample was received once in each
// epoch.
void ExpectWholeStream(ScriptRun& run, std::chrono::seconds deadline = std::chrono::seconds(90));

bool ProcessRuns(pid_t pid);
// Waits at most ten seconds.
bool ProcessEnds(pid_t pid);

}  // namespace hetero::testing
