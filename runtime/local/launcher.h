#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"

namespace hetero::local {

struct LaunchOptions {
  api::HeteroTrainingJob job;            // valid, see CheckLocalJob()
  std::string runtime_program;           // path of hetero-runtime
  std::string trainer_program;           // path of hetero-trainer
  std::string output_folder;             // prepared, see PrepareOutputFolder()
  std::string dump_stream_folder;        // empty: no dump
  std::string working_directory;         // of scripts
  std::string python_path;               // PYTHONPATH of scripts; empty: this process's
  std::vector<std::string> usable_gpus;  // see gpus.h
  bool input_only = false;
  // The one rank's script is started by somebody else (attachment.h): where its stream is goes to
  // standard output as {"socket": PATH}, all else to standard error, and the job is stopped when
  // standard input ends.
  bool attach = false;
  bool ceiling_probe = false;      // trainers first measure their rate without input
  bool console_on_stderr = false;  // what is printed goes to standard error, as with `attach`
  // Where the head serves its pages, as process::ParseHttpAddress() takes it, port 0 for a free
  // one; empty: nowhere. The address is printed before anything is started.
  std::string page_address;
};

enum class Outcome { kSucceeded, kFailed, kStopped };

// Runs a job as processes of this machine: starts head, CPU workers and trainers, shows progress,
// replaces processes that are killed or hang (runPolicy.maxRestarts times, all together), and
// ends them all. `stop` asks the head for an orderly end and allows four seconds for it, or 24 for
// a last checkpoint; `kill` ends everything at once. A report is in the output folder in any case.
// Errors: a process or folder could not be created, or the page's address is taken.
absl::StatusOr<Outcome> RunLocal(const LaunchOptions& options, base::Clock& clock,
                                 std::stop_token stop, std::stop_token kill);

}  // namespace hetero::local
