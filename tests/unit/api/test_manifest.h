#pragma once

#include <string>
#include <vector>

#include "api/manifest.h"

namespace hetero::api {

// The smallest useful manifest, as the documentation has it.
inline constexpr char kSmallest[] = R"(apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: vit-blur}
spec:
  dataset:  {uri: "synthetic://", samples: 64000, classes: 1000, image: {height: 224, width: 224, channels: 3}}
  pipeline:
  - {op: GaussianBlur, kernelSize: 11, sigma: {min: 0.1, max: 2.0}, repeat: 10}
  - {op: Normalize}
  training:
    model: {name: vit_b_16}
    batchSizePerWorker: 64
    maxSteps: 1000
    optimizer: {name: SGD, learningRate: 0.001, momentum: 0.9}
  roles:
  - {name: head, type: Head}
  - {name: cpu,  type: CPUWorker, replicas: 2}
  - {name: gpu,  type: GPUWorker, replicas: 1}
)";

// Errors of the smallest manifest with the overrides applied, as FormatErrors prints them.
inline std::string ErrorsOf(const std::vector<std::string>& overrides) {
  return FormatErrors(ParseManifest(kSmallest, overrides).errors);
}

}  // namespace hetero::api
