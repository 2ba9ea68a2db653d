#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/unit/api/test_manifest.h"

namespace hetero::api {
namespace {

using nlohmann::json;

// Every field of the manifest, none at its default.
constexpr char kFull[] = R"(apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: full, namespace: ml, uid: u-1, labels: {a: b}, annotations: {c.d/e: f}}
spec:
  dataset:
    uri: file:///data
    format: ImageFolder
    samples: 10
    classes: 2
    image: {height: 3, width: 4, channels: 1}
    maxBadSamples: 7
    shuffle: {mode: Block, blockSize: 16}
    validation: {uri: "s3://bucket/v", format: TFRecord, maxBadSamples: 0}
  pipeline:
  - {op: Decode}
  - {op: Resize, shorterSide: 9, interpolation: Nearest, placement: CPUWorker}
  - {op: RandomResizedCrop, size: {height: 8, width: 9}, scale: {min: 0.1, max: 0.9}, ratio: {min: 1, max: 2}}
  - {op: Rotate, degrees: {min: -5, max: 5.5}}
  - op: ColorJitter
    brightness: {min: 0.5, max: 1}
    contrast: {min: 0, max: 1.25}
    saturation: {min: 1, max: 1}
    hue: {min: -0.5, max: 0.25}
  - {op: Grayscale, outputChannels: 3, probability: 0.3}
  - {op: GaussianBlur, kernelSize: 5, sigma: {min: 0.3, max: 0.4}, repeat: 3}
  - {op: RandomErasing, probability: 0, value: 3.5}
  - {op: RandAugment, operations: 1, magnitude: 5}
  - {op: Delay, milliseconds: 12, placement: Trainer}
  - {op: Plugin, path: /opt/p.so, name: p, parameters: {k: "1"}}
  - {op: Python, path: /app, module: a.b, function: f, outputs: {image: {shape: [8, 9, 3], type: Uint8}}}
  - {op: Normalize, mean: [0.1, 0.2, 0.3], std: [1, 2, 3]}
  - {op: Cast, type: Uint8}
  training:
    model: {plugin: /p/libm.so, name: net, weights: "file:///w"}
    batchSizePerWorker: 5
    inputWindow: 512Mi
    epochs: 6
    maxSteps: 7
    lastBatch: Drop
    loss: {labelSmoothing: 0.1}
    optimizer: {name: AdamW, learningRate: 0.002, weightDecay: 0.3, betas: [0.8, 0.9], epsilon: 1.0e-6}
    schedule: {name: Step, warmupSteps: 3, stepEpochs: 4, gamma: 0.5, minLearningRate: 0.01, scaleLearningRate: LinearWithWorldSize}
    precision: BF16
    gradientAccumulationSteps: 2
    gradientClipNorm: 1.5
    seed: 9007199254740993
    evaluation: {everySteps: 100}
    checkpoint: {uri: "file:///c", everySteps: 1, everySeconds: 2, keep: 3, resume: Never}
    stopOnNonFinite: Skip
    parallelism: {partitions: 2, microbatches: 4}
  output: {uri: "file:///o"}
  storage:
  - {prefix: "s3://bucket", endpoint: "http://minio:9000", region: r, pathStyle: true, caBundle: /ca.pem, secretRef: {name: s}, prices: {perThousandGets: "0.1", perGBEgress: "0.2"}}
  - {prefix: "s3://bucket/public", anonymous: true}
  roles:
  - {name: head, type: Head, restartScope: Gang}
  - {name: cpu, type: CPUWorker, replicas: 2, minReplicas: 1, maxReplicas: 3, pricePerHour: "0.20"}
  - name: gpu
    type: GPUWorker
    replicas: 4
    gpusPerReplica: 8
    failureRules:
    - {action: FailJob, onExitCodes: {operator: NotIn, values: [137, 143]}}
    - {action: RestartPod, onReason: OOMKilled}
    template: {spec: {containers: [{name: runtime, image: "a:1"}]}}
  runPolicy:
    suspend: true
    managedBy: example.com/queue
    startupDeadlineSeconds: 1
    activeDeadlineSeconds: 5000000000
    maxDollars: "250.00"
    memberTimeoutSeconds: 2
    stallTimeoutSeconds: 3
    stopGraceSeconds: 7
    maxRestarts: 0
    cleanPodPolicy: None
    ttlSecondsAfterFinished: 0
  network: {networkPolicy: Disabled, tls: Disabled}
  autoscaling: Enabled
  insight: {rules: [{name: LossNotFinite, action: Ignore}, {name: InputBound, thresholds: [{name: waitPercent, value: 12.5}]}]}
)";

// kSmallest with a script in the place of the model, and of what comes with a model.
const std::vector<std::string>& Scripted() {
  static const auto& overrides = *new std::vector<std::string>{
      "training.model=", "training.optimizer=",
      "training.script={command: [python3, train.py, --tag, ''], workingDirectory: /app}",
      "dataset.label={type: Float32, shape: [4, 2], field: box}"};
  return overrides;
}

TEST(RoundTripTest, JsonOfAParsedJobParsesToTheSameJob) {
  for (const auto& [text, overrides] :
       std::vector<std::pair<const char*, std::vector<std::string>>>{
           {kSmallest, {}}, {kFull, {}}, {kSmallest, Scripted()}}) {
    const ManifestResult first = ParseManifest(text, overrides);
    ASSERT_EQ(FormatErrors(first.errors), "");
    const ManifestResult second = ParseManifest(ToJson(first.job));
    ASSERT_EQ(FormatErrors(second.errors), "");
    EXPECT_EQ(ToJson(second.job), ToJson(first.job));
  }
}

TEST(RoundTripTest, EveryGivenValueIsInTheJson) {
  const ManifestResult result = ParseManifest(kFull);
  ASSERT_EQ(FormatErrors(result.errors), "");
  EXPECT_EQ(result.job.spec.world_size(), 32);
  EXPECT_EQ(result.job.spec.training.seed, 9007199254740993);
  const json root = json::parse(ToJson(result.job));
  EXPECT_EQ(root["apiVersion"], "training.hetero.dev/v1alpha1");
  EXPECT_EQ(root["kind"], "HeteroTrainingJob");
  EXPECT_EQ(root["metadata"], json::parse(R"({"name": "full", "namespace": "ml", "uid": "u-1",
      "labels": {"a": "b"}, "annotations": {"c.d/e": "f"}})"));
  const json& spec = root["spec"];
  EXPECT_EQ(spec["dataset"], json::parse(R"({"uri": "file:///data", "format": "ImageFolder",
      "samples": 10, "classes": 2, "image": {"height": 3, "width": 4, "channels": 1},
      "maxBadSamples": 7, "shuffle": {"mode": "Block", "blockSize": 16},
      "validation": {"uri": "s3://bucket/v", "format": "TFRecord", "maxBadSamples": 0}})"));
  EXPECT_EQ(spec["pipeline"].size(), 14);
  EXPECT_EQ(spec["pipeline"][4], json::parse(R"({"op": "ColorJitter", "repeat": 1,
      "placement": "Auto", "brightness": {"min": 0.5, "max": 1.0},
      "contrast": {"min": 0.0, "max": 1.25}, "saturation": {"min": 1.0, "max": 1.0},
      "hue": {"min": -0.5, "max": 0.25}})"));
  EXPECT_EQ(spec["training"]["schedule"], json::parse(R"({"name": "Step", "warmupSteps": 3,
      "stepEpochs": 4, "gamma": 0.5, "minLearningRate": 0.01,
      "scaleLearningRate": "LinearWithWorldSize"})"));
  EXPECT_EQ(spec["storage"], json::parse(R"([{"prefix": "s3://bucket",
      "endpoint": "http://minio:9000", "region": "r", "pathStyle": true, "caBundle": "/ca.pem",
      "secretRef": {"name": "s"},
      "prices": {"perThousandGets": "0.1", "perGBEgress": "0.2"}}, {"prefix": "s3://bucket/public", "anonymous": true}])"));
  EXPECT_EQ(spec["roles"][2], json::parse(R"({"name": "gpu", "type": "GPUWorker", "replicas": 4,
      "gpusPerReplica": 8, "restartScope": "Pod", "failureRules": [
        {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [137, 143]}},
        {"action": "RestartPod", "onReason": "OOMKilled"}],
      "template": {"spec": {"containers": [{"name": "runtime", "image": "a:1"}]}}})"));
  EXPECT_EQ(spec["runPolicy"], json::parse(R"({"suspend": true, "managedBy": "example.com/queue",
      "startupDeadlineSeconds": 1, "activeDeadlineSeconds": 5000000000, "maxDollars": "250.00", "memberTimeoutSeconds": 2,
      "stallTimeoutSeconds": 3, "stopGraceSeconds": 7, "maxRestarts": 0, "cleanPodPolicy": "None",
      "ttlSecondsAfterFinished": 0})"));
  EXPECT_EQ(spec["autoscaling"], "Enabled");
  EXPECT_EQ(spec["insight"], json::parse(R"({"rules": [{"name": "LossNotFinite",
      "action": "Ignore"}, {"name": "InputBound", "action": "Report",
      "thresholds": [{"name": "waitPercent", "value": 12.5}]}]})"));
}

TEST(RoundTripTest, AScriptKeepsItsWordsAndGetsNoModel) {
  const ManifestResult result = ParseManifest(kSmallest, Scripted());
  ASSERT_EQ(FormatErrors(result.errors), "");
  const json spec = json::parse(ToJson(result.job))["spec"];
  const json& training = spec["training"];
  EXPECT_EQ(spec["dataset"]["label"],
            json::parse(R"({"type": "Float32", "shape": [4, 2], "field": "box"})"));
  EXPECT_EQ(training["script"], json::parse(R"({"command": ["python3", "train.py", "--tag", ""],
      "workingDirectory": "/app"})"));
  EXPECT_FALSE(training.contains("model"));
}

TEST(RoundTripTest, AbsentFieldsStayAbsent) {
  const json spec = json::parse(ToJson(ParseManifest(kSmallest).job))["spec"];
  EXPECT_FALSE(spec.contains("output"));
  EXPECT_FALSE(spec.contains("storage"));
  EXPECT_FALSE(spec["training"].contains("epochs"));
  EXPECT_FALSE(spec["training"].contains("script"));
  EXPECT_FALSE(spec["dataset"].contains("label"));
  EXPECT_FALSE(spec["training"]["model"].contains("torchScript"));
  EXPECT_FALSE(spec["roles"][0].contains("template"));
  EXPECT_FALSE(spec["roles"][0].contains("minReplicas"));
  EXPECT_FALSE(spec["pipeline"][1].contains("mean"));
}

}  // namespace
}  // namespace hetero::api
