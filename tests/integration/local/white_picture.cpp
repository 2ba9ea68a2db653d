#include "tests/integration/local/white_picture.h"

#include "runtime/job/permutation.h"

namespace hetero::testing {
namespace {

constexpr uint64_t kSeed = 11;

std::string BigEndian(int64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

// An IDX dataset.
void WriteData(const WhitePictureJob& job, const TemporaryFolder& folder) {
  std::string pictures =
      std::string("\0\0\x08\x03", 4) + BigEndian(job.samples) + BigEndian(8) + BigEndian(8);
  std::string labels = std::string("\0\0\x08\x01", 4) + BigEndian(job.samples);
  for (int64_t id = 0; id < job.samples; ++id) {
    for (int64_t pixel = 0; pixel < 64; ++pixel) {
      pictures.push_back(id == job.white() ? '\xff' : static_cast<char>((id * 7 + pixel) % 251));
    }
    labels.push_back(static_cast<char>(id % 10));
  }
  WriteFile(folder / "train-images-idx3-ubyte", pictures);
  WriteFile(folder / "train-labels-idx1-ubyte", labels);
}

std::string Yaml(const WhitePictureJob& job, const TemporaryFolder& folder) {
  std::string yaml = R"(
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: white}
spec:
  dataset: {uri: 'file://)";
  yaml += folder.path() + "', format: IDX, classes: 10}\n";
  yaml += "  pipeline: " + job.pipeline + "\n  training:\n    model: " + job.model + "\n";
  yaml += "    batchSizePerWorker: " + std::to_string(job.batch / job.ranks) + "\n";
  yaml += "    seed: " + std::to_string(kSeed) + R"(
    epochs: 1
    optimizer: {name: SGD, learningRate: 0.05}
  roles:
  - {name: head, type: Head}
  - {name: gpu, type: GPUWorker, gpusPerReplica: 0, replicas: )";
  return yaml + std::to_string(job.ranks) + "}\n";
}

}  // namespace

int64_t WhitePictureJob::white() const {
  return job::Permutation(kSeed, 0, samples, api::Shuffle()).At(slot);
}

WhitePictureOutcome RunToTheEnd(const WhitePictureJob& job) {
  const TemporaryFolder folder;
  WriteData(job, folder);
  LocalRun run(Yaml(job, folder));
  WhitePictureOutcome outcome;
  outcome.result = run.Wait(std::chrono::seconds(120));
  outcome.report = run.report();
  return outcome;
}

}  // namespace hetero::testing
