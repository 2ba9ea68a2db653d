// What a Python operator costs beside its function: a picture of 224 x 224 x 3 (150 KB) goes to an
// interpreter and comes back from a function that returns it as it is. Wall time of one call, and
// CPU time of this process; the target is 60 us. Then the private memory of interpreters whose
// module imports numpy alone, and torchvision where there is one.
//
//   PATH=FOLDER_OF_PYTHON3_WITH_NUMPY:$PATH build/release/bench/interpreter_bench
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/log.h"
#include "runtime/interpreter/interpreters.h"
#include "tests/bench/pairs.h"

namespace {

using namespace hetero;
using Clock = std::chrono::steady_clock;

constexpr int kSide = 224;
constexpr int kCalls = 4000;

api::OperatorSpec Identity(const std::string& folder, const std::string& module) {
  return {.op = api::OperatorKind::kPython,
          .path = folder,
          .module = module,
          .function = "same",
          .outputs = api::OperatorOutputs{.image = {.shape = {kSide, kSide, 3}}}};
}

std::vector<std::string> Environment() {
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) variables.emplace_back(*one);
  variables.emplace_back("OMP_NUM_THREADS=1");
  return variables;
}

int Measure(const std::string& folder, const std::string& module, bool needed) {
  const std::vector<api::OperatorSpec> pipeline = {Identity(folder, module)};
  auto started =
      interpreter::Interpreters::Start(pipeline, {.host = {.environment = Environment()}});
  if (!started.ok()) {
    std::fprintf(stderr, "%s: %s\n", module.c_str(),
                 std::string(started.status().message()).c_str());
    return needed ? 1 : 0;
  }
  const interpreter::Interpreters& python = **started;
  const int32_t function = *python.Find(pipeline[0]);
  pipeline::Image in, out;
  in.Reshape({kSide, kSide, 3});
  out.Reshape({kSide, kSide, 3});
  std::vector<double> walls, own;
  for (int i = 0; i < kCalls; ++i) {
    std::memset(in.bytes.data(), i, in.bytes.size());
    const double cpu = bench::CpuSeconds();
    const Clock::time_point begin = Clock::now();
    const absl::Status called =
        python.Call(function, {.seed = 1, .sample_id = i}, true, in.view(), &out);
    walls.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    own.push_back(1e6 * (bench::CpuSeconds() - cpu));
    if (!called.ok() || out.bytes != in.bytes) {
      std::fprintf(stderr, "call %d: %s\n", i, std::string(called.message()).c_str());
      return 1;
    }
  }
  std::sort(walls.begin(), walls.end());
  std::printf(
      "%-12s a call takes %.0f us (median; 10 to 90 %%: %.0f to %.0f), of which %.0f us of this "
      "process's CPU; "
      "target 60\n%-12s private memory of an interpreter: %.1f MiB\n",
      module.c_str(), walls[kCalls / 2], walls[kCalls / 10], walls[kCalls * 9 / 10],
      bench::Median(own), module.c_str(), double(python.counters().private_bytes) / (1 << 20));
  return 0;
}

}  // namespace

int main() {
  log::Init("bench", log::Level::kError);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("interpreter_bench." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string same = "def same(sample, rng):\n    return {'image': sample['image']}\n";
  std::ofstream(folder / "with_numpy.py") << same;
  std::ofstream(folder / "with_torch.py") << "from torchvision.transforms import v2\n" << same;
  const int failed =
      Measure(folder.string(), "with_numpy", true) + Measure(folder.string(), "with_torch", false);
  std::filesystem::remove_all(folder);
  return failed;
}
