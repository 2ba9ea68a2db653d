#include <vector>

#include "runtime/compare/comparison.h"
#include "tests/fuzz/fuzz.h"

// A report.json, compared with one that has every field and with itself. What is shown in a
// terminal has no control characters, the page nothing that a name could open, and the JSON is
// JSON.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero::compare;
  using hetero::fuzz::Require;
  static const RunReport whole = *ParseReport(
      R"({"job": "a", "state": "Succeeded", "samplesPerSecond": 640, "samplesConsumed": 64000,
          "phaseSeconds": {"wait": 10, "forward": 20}, "cpuSecondsPerSample": {"cpu": 0.01},
          "lossCurve": [{"step": 1, "loss": 2}, {"step": 9, "loss": 1}],
          "config": {"spec": {"roles": [{"name": "gpu", "type": "GPUWorker", "pricePerHour": "1"}],
                              "pipeline": [{"op": "Decode"}, {"op": "Normalize"}]}}})",
      "whole");
  const absl::StatusOr<RunReport> run =
      ParseReport(hetero::fuzz::TextOf(data, size), "out/run/report.json");
  if (!run.ok()) {
    Require(run.status().message().find("out/run/report.json") == 0, "an error without its file");
    return 0;
  }
  const Comparison comparison = Compare({whole, *run, *run});
  for (const char c : ToText(comparison)) {
    Require(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F),
            "a control character in text for a terminal");
  }
  Require(ToHtml(comparison).find("<script") == std::string::npos, "a name opens a tag");
  Require(nlohmann::json::accept(ToJson(comparison)), "the JSON is none");
  return 0;
}
