#include "tests/integration/support/jobs.h"

#include <stdexcept>

#include "api/manifest.h"

namespace hetero::testing {

std::string SmallJobYaml() {
  return R"(
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: small}
spec:
  dataset:
    uri: "synthetic://"
    samples: 512
    classes: 4
    image: {height: 16, width: 16, channels: 3}
  pipeline:
  - {op: RandomResizedCrop, size: {height: 12, width: 12}, scale: {min: 0.5, max: 1.0}}
  - {op: HorizontalFlip}
  - {op: GaussianBlur, kernelSize: 3, sigma: {min: 0.1, max: 1.0}}
  - {op: Normalize}
  training:
    model: {name: mlp}
    batchSizePerWorker: 32
    epochs: 2
    optimizer: {name: SGD, learningRate: 0.05, momentum: 0.9}
    seed: 11
  roles:
  - {name: head, type: Head}
  - {name: cpu, type: CPUWorker, replicas: 1}
  - {name: gpu, type: GPUWorker, replicas: 2, gpusPerReplica: 0}
)";
}

api::HeteroTrainingJob SmallJob(const std::vector<std::string>& overrides) {
  const api::ManifestResult result = api::ParseManifest(SmallJobYaml(), overrides);
  if (!result.errors.empty()) throw std::runtime_error(api::FormatErrors(result.errors));
  return result.job;
}

}  // namespace hetero::testing
