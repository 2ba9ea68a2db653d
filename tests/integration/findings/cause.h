#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/integration/findings/disturbance.h"
#include "tests/integration/support/program_run.h"

// One cause of slowness in a real job: what the job says about it, and whether it helps to do what
// is said.
namespace hetero::testing {

// How a job is run, beside BalancedJob().
struct JobSetup {
  std::vector<std::string> settings;   // as in --set
  std::vector<std::string> arguments;  // of `hetero-runtime local`
  std::vector<std::string> environment;
  std::function<std::unique_ptr<Disturbance>(LocalRun&)> strike;  // absent: nothing befalls it
};

// Runs the job to its end, with `more` settings behind its own; the report.
nlohmann::json RunLocally(const JobSetup& setup, const std::vector<std::string>& more = {});

// What gets better with the remedy, from the report.
struct Gain {
  const char* unit = "samples/s";
  std::function<double(const nlohmann::json& report)> of;
  bool more_is_better = true;
  double times = 1.3;  // by how much at least; far from what noise does
};

// Consumed samples over all of the training, checkpoints and evaluations included.
double SamplesPerSecond(const nlohmann::json& report);

struct Cause {
  std::string name;    // "TooFewWorkers"
  std::string rule;    // whose finding comes first
  std::string member;  // that it names; empty: the job; "*": whichever
  JobSetup job;
  bool all_cores = false;  // of the machine; else two
  bool quiet = false;      // shows only where nothing else uses the cores
  // What the finding says. FIELD of "set FIELD to VALUE" has to be `field`, and this value is
  // taken; else `remedy` is what somebody makes of the sentence. Neither: it lies outside the
  // manifest, and `cured` is the job where it was done.
  std::string field;
  std::vector<std::string> remedy;  // settings, behind the job's own
  JobSetup cured;
  bool outside = false;
  std::function<nlohmann::json(const JobSetup&, const std::vector<std::string>&)> run = RunLocally;
  // That the job really suffers from it, independent of any rule.
  std::function<void(const nlohmann::json& report)> symptom;
  Gain gain = {.of = SamplesPerSecond};
};

// A job in which nothing is wrong, paced by sleeping: about ten seconds of 200 samples/s, its two
// CPU workers 60 % and its trainer all of the time at work. What runs beside the tests on this
// machine is no part of them: NoisyNeighbour is not asked, where settings do not say otherwise.
std::string BalancedJob();

// Its findings that were there at the end, in their order.
std::vector<nlohmann::json> FindingsOf(const nlohmann::json& report);

// Runs the job with and without its cause, checks the first finding and that the remedy helps, and
// prints what it was before and after.
void ExpectFoundAndHelped(const Cause& cause);

void PrintTo(const Cause& cause, std::ostream* out);

}  // namespace hetero::testing
