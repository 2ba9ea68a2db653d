#include "tests/integration/findings/script_causes.h"

#include <gtest/gtest.h>

#include "tests/integration/findings/setups.h"

namespace hetero::testing {
namespace {

using nlohmann::json;

double SamplesPerSecondFromTheStart(const json& report) {
  return report.at("samplesConsumed").get<double>() / report.at("wallSeconds").get<double>();
}

}  // namespace

Cause ALongStart() {
  const std::string sharp =
      "insight.rules=[{name: NoisyNeighbour, action: Ignore}, {name: MaxInitializationTime, "
      "thresholds: [{name: minutes, value: 0.1}]}]";
  const std::vector<std::string> settings =
      With(ScriptOf({"--compute", "0.02", "--start", "12"}), {sharp, "training.maxSteps=100"});
  return {
      .name = "ALongStart",
      .rule = "MaxInitializationTime",
      .job = {.settings = settings},
      .field = "runPolicy.startupDeadlineSeconds",
      .remedy = {ScriptCommand({"--compute", "0.02"})},
      .symptom = [](const json& report) { EXPECT_GT(report["startupSeconds"].get<double>(), 11); },
      .gain = {.of = SamplesPerSecondFromTheStart}};
}

Cause ABlockedScript() {
  return {.name = "ABlockedScript",
          .rule = "ScriptBlocked",
          .member = "gpu-0",
          .job = {.settings = With(ScriptOf({"--sleep", "0.1"}), {"training.maxSteps=90"})},
          .field = "training.script",
          .remedy = {ScriptCommand({"--compute", "0.01"})},
          .symptom = [](const json& report) { EXPECT_GT(Phase(report, "other"), 8); }};
}

Cause ALockedInterpreter() {
  return {.name = "ALockedInterpreter",
          .rule = "GilBound",
          .member = "gpu-0",
          .job = {.settings = With(ScriptOf({"--compute", "0.02", "--rivals", "3"}),
                                   {"roles.cpu.replicas=1", "pipeline[0].milliseconds=4",
                                    "training.maxSteps=60"})},
          .quiet = true,
          .field = "pipeline",
          .remedy = {ScriptCommand({"--compute", "0.02"})},
          .gain = {.of = SamplesPerSecond, .times = 1.5}};
}

}  // namespace hetero::testing
