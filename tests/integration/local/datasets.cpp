#include "tests/integration/local/datasets.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/integration/support/program_run.h"

namespace hetero::testing {

namespace fs = std::filesystem;

std::string InputDigest(const std::string& dataset) {
  LocalRun run(R"(
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: packed}
spec:
  dataset: )" + dataset +
                   R"(
  pipeline: [{op: Decode}, {op: Resize, size: {height: 8, width: 8}}, {op: HorizontalFlip}, {op: Normalize}]
  training: {model: {name: mlp}, batchSizePerWorker: 4, epochs: 2, seed: 7}
  roles:
  - {name: head, type: Head}
  - {name: cpu, type: CPUWorker, replicas: 1}
  - {name: gpu, type: GPUWorker, replicas: 1, gpusPerReplica: 0}
)",
               {"--input-only"});
  const ProgramResult result = run.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  return run.report().value("streamDigest", "");
}

std::map<std::string, std::string> FilesOf(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const bool hidden = entry.path().filename().string().front() == '.';
    if (!entry.is_regular_file() || hidden) continue;
    files[entry.path().lexically_relative(folder).string()] = ReadFileOrDie(entry.path().string());
  }
  return files;
}

}  // namespace hetero::testing
