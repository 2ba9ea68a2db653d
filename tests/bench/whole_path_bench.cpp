// The whole data path against its kernels: `hetero-runtime local --input-only` on the blur example
// with two CPU workers, and the same pipeline on pictures in memory in one thread, alternately. In
// CPU seconds per picture of all processes together but the launcher, start included, so that other
// programs on the machine hardly count.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/job/philox.h"
#include "runtime/pipeline/pipeline.h"
#include "tests/bench/pairs.h"
#include "tests/bench/process_memory.h"
#include "tests/support/paths.h"

namespace hetero {
namespace {

constexpr int kPairs = 5;
constexpr int kSteps = 1000;  // of 64 pictures, as the reference workload has
constexpr int kPictures = 400;
constexpr double kTarget = 0.9;
constexpr double kMostMib = 300e6 / (1 << 20);

struct Whole {
  double workers = 0, consumer = 0;  // CPU seconds per picture
  double samples_per_second = 0;
  double worker_mib = 0, consumer_mib = 0;  // peak resident, per process
};

Whole RunWhole(const std::filesystem::path& folder) {
  const std::string command =
      testing::BinDir() + "/hetero-runtime local " + testing::SourceDir() +
      "/examples/vit-blur.yaml --input-only --set training.maxSteps=" + std::to_string(kSteps) +
      " --set roles.cpu.replicas=2 --output " + (folder / "out").string() + " >" +
      (folder / "log").string() + " 2>&1";
  if (std::system(command.c_str()) != 0) {
    std::fprintf(stderr, "failed: %s\n", command.c_str());
    std::exit(1);
  }
  const nlohmann::json report = nlohmann::json::parse(std::ifstream(folder / "out/report.json"));
  Whole whole{.workers = report["cpuSecondsPerSample"]["cpu"],
              .consumer = report["cpuSecondsPerSample"]["gpu"],
              .samples_per_second = report["samplesPerSecond"]};
  for (const nlohmann::json& worker : report["workers"]) {
    const bool consumer = worker["name"].get<std::string>().starts_with("gpu");
    double& most = consumer ? whole.consumer_mib : whole.worker_mib;
    most = std::max(most, worker["peakRssBytes"].get<double>() / (1 << 20));
  }
  return whole;
}

int Main() {
  const api::OperatorSpec blur = {.op = api::OperatorKind::kGaussianBlur,
                                  .repeat = 10,
                                  .kernel_size = 11,
                                  .sigma = api::Range{0.1, 2.0}};
  source::RawSample sample;
  sample.shape = {224, 224, 3};
  sample.bytes.resize(224 * 224 * 3);
  job::RandomStream noise(1, 0, 0, 0);
  for (uint8_t& byte : sample.bytes) byte = static_cast<uint8_t>(noise.Below(256));
  const auto pipeline = pipeline::Pipeline::Create({blur}, sample.shape, job::Split::kTrain);
  if (!pipeline.ok()) return 1;
  std::vector<uint8_t> out(sample.bytes.size());
  const auto kernels = [&](int pair) {
    const double begin = bench::CpuSeconds();
    for (int i = 0; i < kPictures; ++i) {
      (void)(*pipeline)->Run(sample, {.seed = 1, .epoch = pair, .sample_id = i}, out);
    }
    return (bench::CpuSeconds() - begin) / kPictures;
  };

  const auto folder =
      std::filesystem::temp_directory_path() / ("hetero-whole-path-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::vector<double> worker_share, whole_share, kernel_ms, worker_ms, consumer_ms, rates;
  Whole whole;
  for (int pair = 0; pair < kPairs; ++pair) {
    const double before = kernels(pair);
    whole = RunWhole(folder);
    const double kernel = (before + kernels(pair)) / 2;
    worker_share.push_back(kernel / whole.workers);
    whole_share.push_back(kernel / (whole.workers + whole.consumer));
    kernel_ms.push_back(1e3 * kernel);
    worker_ms.push_back(1e3 * whole.workers);
    consumer_ms.push_back(1e3 * whole.consumer);
    rates.push_back(whole.samples_per_second);
  }
  // In a run of its own: looking costs the processes time.
  bench::MemoryWatch watch({"sh", "local"});
  RunWhole(folder);
  const double together = watch.Stop();
  std::filesystem::remove_all(folder);
  const double share = bench::Median(worker_share);
  std::printf(
      "whole path, ten blurs, two workers: CPU ms per picture: kernels %.3f, workers %.3f, "
      "consumer "
      "%.3f\n  kernels' share of the workers' time %.2f (target >= %.2f: %s), of all processes' "
      "%.2f; %.0f pictures/s\n  peak resident: worker %.0f MiB, consumer %.0f MiB\n",
      bench::Median(kernel_ms), bench::Median(worker_ms), bench::Median(consumer_ms), share,
      kTarget, share >= kTarget ? "met" : "not met", bench::Median(whole_share),
      bench::Median(rates), whole.worker_mib, whole.consumer_mib);
  std::printf(
      "  all processes but the launcher together, shared pages once: %.0f MiB (target < %.0f: "
      "%s)\n",
      together, kMostMib, together < kMostMib ? "met" : "not met");
  return 0;
}

}  // namespace
}  // namespace hetero

int main() { return hetero::Main(); }
