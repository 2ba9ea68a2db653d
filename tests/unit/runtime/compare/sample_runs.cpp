#include "tests/unit/runtime/compare/sample_runs.h"

#include <gtest/gtest.h>

namespace hetero::compare {

nlohmann::json TimeLine(const std::vector<double>& rates) {
  nlohmann::json points = nlohmann::json::array();
  points.push_back({{"step", 1}, {"seconds", 3}, {"phaseSeconds", {{"wait", 1}}}});
  for (const double rate : rates) {
    const nlohmann::json& last = points.back();
    points.push_back({{"step", last["step"].get<double>() + rate},
                      {"seconds", last["seconds"].get<double>() + 1},
                      {"phaseSeconds", {{"wait", 1}}}});
  }
  return nlohmann::json::array({{{"rank", 0}, {"points", points}}});
}

nlohmann::json ReportOfSlowRun() {
  nlohmann::json report = nlohmann::json::parse(R"json({
    "job": "photos", "state": "Succeeded", "steps": 1000, "samplesConsumed": 64000,
    "samplesPerSecond": 640, "dataWaitPercent": 48.5, "startupSeconds": 4.2, "trainSeconds": 100,
    "wallSeconds": 105, "loss": 0.52, "accuracy": 0.871, "streamDigest": "00aa",
    "costDollars": 0.106, "costPerMillionSamples": 1.656,
    "phaseSeconds": {"wait": 48.5, "hostToDevice": 1, "forward": 15, "backward": 30,
                     "allReduce": 2, "optimizer": 3, "checkpoint": 0, "evaluation": 0.3,
                     "other": 0.2},
    "cpuSecondsPerSample": {"cpu": 0.0031, "gpu": 0.0008},
    "lossCurve": [{"step": 1, "loss": 2.3, "secondsPerStep": 0.11},
                  {"step": 500, "loss": 1.1, "secondsPerStep": 0.1},
                  {"step": 1000, "loss": 0.5, "secondsPerStep": 0.09}],
    "evaluations": [{"epoch": 1, "step": 500, "accuracy": 0.7},
                    {"epoch": 2, "step": 1000, "accuracy": 0.871}],
    "faults": [], "versions": {"hetero": "0.1.0"}, "workers": [],
    "config": {
      "apiVersion": "training.hetero.dev/v1alpha1", "kind": "HeteroTrainingJob",
      "metadata": {"name": "photos"},
      "spec": {
        "dataset": {"uri": "file:///data", "format": "ImageFolder", "classes": 10},
        "pipeline": [{"op": "Decode"},
                     {"op": "RandomResizedCrop", "size": {"height": 224, "width": 224}},
                     {"op": "Normalize"}],
        "training": {"model": {"name": "resnet18"}, "batchSizePerWorker": 64, "maxSteps": 1000,
                     "optimizer": {"name": "SGD", "learningRate": 0.1}},
        "roles": [{"name": "head", "type": "Head"},
                  {"name": "cpu", "type": "CPUWorker", "replicas": 2, "pricePerHour": "0.816"},
                  {"name": "gpu", "type": "GPUWorker", "pricePerHour": "1.408"}]}}
  })json");
  report["timeLines"] = TimeLine({9.8, 10, 10.2, 10, 9.9, 10.1});
  return report;
}

nlohmann::json ReportOfFastRun() {
  nlohmann::json report = ReportOfSlowRun();
  report.update(nlohmann::json::parse(R"json({
    "steps": 500, "samplesPerSecond": 1200, "dataWaitPercent": 3.1, "trainSeconds": 53.333,
    "wallSeconds": 58, "accuracy": 0.865, "loss": 0.55, "streamDigest": "00bb",
    "costDollars": 0.0752, "costPerMillionSamples": 1.175,
    "phaseSeconds": {"wait": 1.65, "hostToDevice": 1, "forward": 15, "backward": 30.183,
                     "allReduce": 2, "optimizer": 3, "checkpoint": 0, "evaluation": 0.3,
                     "other": 0.2}
  })json"));
  nlohmann::json& spec = report["config"]["spec"];
  spec["roles"][1]["replicas"] = 4;
  spec["training"]["batchSizePerWorker"] = 128;
  spec["pipeline"].insert(spec["pipeline"].begin() + 2,
                          nlohmann::json::object({{"op", "HorizontalFlip"}}));
  return report;
}

RunReport ReadRun(const nlohmann::json& report, const std::string& place) {
  absl::StatusOr<RunReport> run = ParseReport(report.dump(), place);
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? *std::move(run) : RunReport{};
}

}  // namespace hetero::compare
