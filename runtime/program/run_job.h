#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/hetero_training_job.h"
#include "base/signals.h"

// A job as processes of this machine, with what a person sees of it.
namespace hetero::commands {

// What `hetero-runtime local` is told beside the job.
struct LocalArguments {
  std::string manifest;
  std::vector<std::string> overrides;
  std::string output;   // empty: as the manifest says
  std::string trainer;  // empty: the one beside this program
  std::string dump_stream;
  bool input_only = false;
  bool ceiling_probe = false;
  std::string page;  // HOST:PORT of the job's pages; empty: none
  bool attach = false;
  bool console_on_stderr = false;  // also where nobody attaches
  bool strict_rules = false;       // findings that hold at the end are a result of their own
};

// A job with which nothing is known to be wrong, and what it runs with.
struct CheckedJob {
  api::HeteroTrainingJob job;
  std::string working_directory;  // of scripts
  std::string runtime, trainer;   // programs
  std::vector<std::string> gpus;  // that may be used
};

// Checks `job`, of the manifest `arguments.manifest`, before anything of it starts. On failure
// prints every error to standard error, sets *exit_code and returns nothing. `signals` end it.
std::optional<CheckedJob> CheckJob(api::HeteroTrainingJob job, const LocalArguments& arguments,
                                   const base::SignalStop& signals, int* exit_code);

// Runs it to its end, its report and its results; the first signal stops it, the second kills it.
// `ignored_fields` are those of the manifest that one machine does not honour, to be told. Returns
// the exit code of `hetero-runtime local`; has printed why it is not 0.
int RunJob(const CheckedJob& checked, const LocalArguments& arguments,
           const std::vector<std::string>& ignored_fields, const base::SignalStop& signals);

}  // namespace hetero::commands
