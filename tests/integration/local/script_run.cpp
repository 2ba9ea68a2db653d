#include "tests/integration/local/script_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/support/paths.h"

namespace hetero::testing {
namespace {

constexpr char kJob[] = R"(
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: scripts}
spec:
  dataset:
    uri: "synthetic://"
    samples: 512
    classes: 4
    image: {height: 16, width: 16, channels: 3}
  pipeline:
  - {op: RandomResizedCrop, size: {height: 12, width: 12}, scale: {min: 0.5, max: 1.0}}
  - {op: HorizontalFlip}
  - {op: Normalize}
  training:
    script: {command: [COMMAND]}
    batchSizePerWorker: 32
    epochs: 2
    seed: 11
  runPolicy: {startupDeadlineSeconds: 30}
  roles:
  - {name: head, type: Head}
  - {name: cpu, type: CPUWorker, replicas: 2}
  - {name: gpu, type: GPUWorker, replicas: 2, gpusPerReplica: 0}
)";

std::string Manifest(const std::vector<std::string>& command) {
  std::string list;
  for (const std::string& argument : command) list += (list.empty() ? "'" : ", '") + argument + "'";
  std::string yaml = kJob;
  const std::string place = "COMMAND";
  return yaml.replace(yaml.find(place), place.size(), list);
}

std::vector<std::string> Settings(const std::vector<std::string>& settings) {
  std::vector<std::string> arguments;
  for (const std::string& setting : settings) {
    arguments.push_back("--set");
    arguments.push_back(setting);
  }
  return arguments;
}

template <typename Condition>
bool Await(std::chrono::seconds patience, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace

ScriptRun::ScriptRun(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& settings,
                     const std::vector<std::string>& command) {
  std::vector<std::string> all = command;
  if (all.empty()) {
    all = {HETERO_PYTHON, testing::SourceDir() + "/tests/integration/local/scripts/script.py",
           folder_.path()};
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  // No byte code beside the sources.
  local_ = std::make_unique<LocalRun>(Manifest(all), Settings(settings),
                                      std::vector<std::string>{"PYTHONDONTWRITEBYTECODE=1"});
}

std::string ScriptRun::Read(const std::string& name) const {
  std::ifstream file(path(name));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool ScriptRun::WaitForFile(const std::string& name, const std::string& text,
                            std::chrono::seconds deadline) const {
  return Await(deadline, [&] {
    const std::string content = Read(name);
    return !content.empty() && content.find(text) != std::string::npos;
  });
}

std::map<int, std::vector<int>> ScriptRun::Samples() const {
  std::map<int, std::vector<int>> samples;
  for (const char* name : {"journal-0", "journal-1"}) {
    std::map<int, std::vector<int>> of_rank;
    std::istringstream lines(Read(name));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream numbers(line);
      int step = 0;
      numbers >> step;
      of_rank[step].clear();
      for (int id = 0; numbers >> id;) of_rank[step].push_back(id);
    }
    for (const auto& [step, ids] : of_rank) {
      samples[step].insert(samples[step].end(), ids.begin(), ids.end());
    }
  }
  return samples;
}

const std::string& DigestWithoutScript() {
  static const std::string digest = [] {
    LocalRun run(Manifest({"/bin/true"}), {"--input-only"});
    const ProgramResult result = run.Wait();
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return run.report().value("streamDigest", "");
  }();
  return digest;
}

void ExpectWholeStream(ScriptRun& run, std::chrono::seconds deadline) {
  const ProgramResult result = run.Wait(deadline);
  ASSERT_EQ(result.exit_code, 0) << result.output << run.local().log("gpu-0")
                                 << run.local().log("gpu-1") << run.local().log("head");
  const nlohmann::json report = run.report();
  EXPECT_EQ(report["state"], "Succeeded");
  EXPECT_EQ(report["steps"], kScriptSteps);
  EXPECT_NE(DigestWithoutScript(), "");
  EXPECT_EQ(report["streamDigest"], DigestWithoutScript()) << report;
  std::map<int, std::vector<int>> samples = run.Samples();
  EXPECT_EQ(samples.size(), static_cast<size_t>(kScriptSteps));
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<int> ids;
    for (int step = epoch * 8 + 1; step <= epoch * 8 + 8; ++step) {
      ids.insert(ids.end(), samples[step].begin(), samples[step].end());
    }
    std::sort(ids.begin(), ids.end());
    ASSERT_EQ(ids.size(), 512u) << "epoch " << epoch;
    for (int i = 0; i < 512; ++i) ASSERT_EQ(ids[static_cast<size_t>(i)], i) << "epoch " << epoch;
  }
}

bool ProcessRuns(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  return std::getline(file, line) && line.find(") Z ") == std::string::npos;
}

bool ProcessEnds(pid_t pid) {
  return Await(std::chrono::seconds(10), [pid] { return !ProcessRuns(pid); });
}

}  // namespace hetero::testing
