#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/api/test_manifest.h"

// One row per rule: overrides on the smallest manifest and the error wanted; an empty error means
// that the manifest has to be accepted.
namespace hetero::api {
namespace {

struct Case {
  std::vector<std::string> overrides;
  std::string error;
};

void Check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const std::string errors = ErrorsOf(c.overrides);
    if (c.error.empty()) {
      EXPECT_EQ(errors, "") << c.overrides[0];
    } else {
      EXPECT_THAT(errors, ::testing::HasSubstr(c.error)) << c.overrides[0];
    }
  }
}

TEST(RulesTest, Names) {
  Check(
      {{{"metadata.name=a"}, ""},
       {{"metadata.name=" + std::string(38, 'a')}, ""},
       {{"metadata.name=" + std::string(39, 'a')}, "metadata.name: has 39 characters; at most 38"},
       {{"metadata.name=1a"}, "metadata.name: must be lower-case"},
       {{"metadata.name=a-"}, "metadata.name: must be lower-case"},
       {{"roles.cpu.name=" + std::string(21, 'b')}, "spec.roles[1].name: has 21 characters"},
       {{"roles.cpu.name=Cpu"}, "spec.roles[1].name: must be lower-case"},
       {{"roles.cpu.name=gpu"}, "spec.roles[2].name: 'gpu' is the name of spec.roles[1] too"}});
}

TEST(RulesTest, Gangs) {
  Check({{{"scheduling={gang: Volcano, queue: research}"}, ""},
         {{"scheduling={gang: Coscheduling}"}, ""},
         {{"scheduling={gang: None, elasticPriorityClass: low}"}, ""},
         {{"scheduling={gang: Slurm}"}, "spec.scheduling.gang: "},
         {{"scheduling={queue: research}"}, "spec.scheduling.queue: is a queue of Volcano"},
         {{"scheduling={gang: Native, queue: research}"},
          "spec.scheduling.queue: is a queue of Volcano, taken only with gang: Volcano"},
         {{"scheduling={gang: Volcano, queue: Research}"}, "spec.scheduling.queue: "}});
}

TEST(RulesTest, Dataset) {
  Check(
      {{{"dataset.uri=file:///data/mnist", "dataset.samples=", "dataset.image="}, ""},
       {{"dataset.uri=s3://bucket/prefix"}, ""},
       {{"dataset.uri=s3://bucket"}, ""},
       {{"dataset.uri=https://host.example:8443/a%20b/train.jsonl"}, ""},
       {{"dataset.uri=https://host/train.csv", "dataset.format=Manifest"}, ""},
       {{"dataset.uri=https://host/train-{000..127}.tar", "dataset.format=WebDataset"}, ""},
       {{"dataset.uri=https://host/train", "dataset.format=ImageFolder"},
        "spec.dataset.format: must not be ImageFolder for https://: a web server lists no folders; "
        "name shards or a manifest there"},
       {{"dataset.uri=https://host/train.csv?token=x"},
        "https://host/path of a manifest or of shards, without"},
       {{"dataset.uri=https://me:secret@host/train.csv"}, "spec.dataset.uri: must be synthetic://"},
       {{"dataset.uri=http://host/train.csv"}, "spec.dataset.uri: must be synthetic://"},
       {{"dataset.validation={uri: 'https://host/v', format: IDX}"},
        "spec.dataset.validation.format: must not be IDX for https://"},
       {{"dataset.uri=file://data"}, "spec.dataset.uri: must be synthetic://"},
       {{"dataset.uri=/data"}, "spec.dataset.uri: must be synthetic://"},
       {{"dataset.samples="}, "spec.dataset.samples: is required for synthetic data"},
       {{"dataset.classes="}, "spec.dataset.classes: is required for synthetic data"},
       {{"dataset.image="}, "spec.dataset.image: is required for synthetic data"},
       {{"dataset.samples=0"}, "spec.dataset.samples: must be at least 1"},
       {{"dataset.format=IDX"}, "spec.dataset.format: must be Auto or Synthetic"},
       {{"dataset.format=Synthetic", "dataset.uri=file:///x"},
        "spec.dataset.uri: must be synthetic://"},
       {{"dataset.format=Idx"}, "spec.dataset.format: must be one of Auto, Synthetic, IDX"},
       {{"dataset.shuffle={mode: Block, blockSize: 0}"}, "spec.dataset.shuffle.blockSize: must be"},
       {{"dataset.shuffle={mode: Block, window: 16}"}, ""},
       {{"dataset.shuffle={mode: Block, window: 0}"}, "spec.dataset.shuffle.window: must be"},
       {{"dataset.maxBadSamples=-1"}, "spec.dataset.maxBadSamples: must be at least 0"},
       {{"dataset.validation={uri: 'file:///v'}"}, ""},
       {{"dataset.validation={uri: 'synthetic://'}"},
        "spec.dataset.validation.samples: is required"},
       {{"dataset.validation={uri: 'file:///v', shuffle: {}}"},
        "validation.shuffle: unknown field"}});
}

TEST(RulesTest, Storage) {
  const auto with = [](const std::string& entries) {
    return std::vector<std::string>{"storage=" + entries};
  };
  std::string many;
  for (int i = 0; i < 17; ++i) many += "{prefix: 's3://bucket/" + std::to_string(i) + "'},";
  Check(
      {{with("[]"), ""},
       {with("[{prefix: 's3://bucket'}, {prefix: 's3://bucket/a b'}, {prefix: 'https://host'}]"),
        ""},
       {with("[{prefix: 's3://bucket', endpoint: 'https://minio.example:9000', region: us-east-1, "
             "pathStyle: false, caBundle: /etc/ca.pem, secretRef: {name: keys.of-minio}}]"),
        ""},
       {with("[{prefix: 's3://bucket', endpoint: 'http://[::1]:9000', anonymous: true}]"), ""},
       {with("[{prefix: 's3://bucket', anonymous: false, secretRef: {name: keys}}]"), ""},
       {with("[{prefix: 'https://host/a%20b', caBundle: /etc/ca.pem}]"), ""},
       {with("[" + many + "]"), "spec.storage: has 17 entries; at most 16 are allowed"},
       {with("[{}]"), "spec.storage[0].prefix: is required"},
       {with("[{prefix: 's3://b'}]"), "spec.storage[0].prefix: must be s3://bucket, s3://"},
       {with("[{prefix: 's3://bucket'}, {prefix: 's3://bucket/'}]"),
        "spec.storage[1].prefix: must be s3://bucket, s3://bucket/prefix (a bucket has 3 "
        "characters "
        "or more) or https://host/path, without a slash at its end, got 's3://bucket/'"},
       {with("[{prefix: 'http://host'}]"), "spec.storage[0].prefix: must be s3://"},
       {with("[{prefix: 'https://host/a?b'}]"), "spec.storage[0].prefix: must be s3://"},
       {with("[{prefix: 's3://bucket/a'}, {prefix: 's3://bucket'}, {prefix: 's3://bucket/a'}]"),
        "spec.storage[2].prefix: 's3://bucket/a' is the prefix of spec.storage[0] too; remove one"},
       {with("[{prefix: 's3://bucket', endpoint: 'https://host/path'}]"),
        "spec.storage[0].endpoint: must be http://host, https://host or either with :port"},
       {with("[{prefix: 's3://bucket', caBundle: ca.pem}]"),
        "spec.storage[0].caBundle: must be an absolute path"},
       {with("[{prefix: 's3://bucket', secretRef: {}}]"),
        "spec.storage[0].secretRef.name: is required"},
       {with("[{prefix: 's3://bucket', secretRef: {name: Keys}}]"),
        "spec.storage[0].secretRef.name: must be lower-case letters, digits, '-' and '.'"},
       {with("[{prefix: 's3://bucket', anonymous: true, secretRef: {name: keys}}]"),
        "spec.storage[0].secretRef: is not taken beside anonymous: true, which signs no request; "
        "remove one of them"},
       {with("[{prefix: 'https://host', region: eu}]"),
        "spec.storage[0].region: is taken only with a prefix of s3://; leave it out"},
       {with("[{prefix: 'https://host', secretRef: {name: keys}}]"),
        "spec.storage[0].secretRef: is taken only with a prefix of s3://; leave it out"},
       {with("[{prefix: 's3://bucket', prices: {perThousandGets: '0.0004', perGBEgress: '0.09'}}]"),
        ""},
       {with("[{prefix: 'https://host', prices: {perGBEgress: '0.09'}}]"), ""},
       {with("[{prefix: 's3://bucket', prices: {perThousandGets: '$0.1'}}]"),
        "spec.storage[0].prices.perThousandGets: must be a decimal number such as"},
       {with("[{prefix: 's3://bucket', prices: {perGigabyte: '0.1'}}]"),
        "spec.storage[0].prices.perGigabyte: unknown field"}});
}

TEST(RulesTest, FieldsOfADataset) {
  const auto with = [](const char* fields, const char* format, const char* label = "") {
    std::vector<std::string> overrides = {"dataset.uri=file:///data",
                                          std::string("dataset.format=") + format,
                                          std::string("dataset.fields=") + fields};
    if (*label != 0) overrides.push_back(std::string("dataset.label=") + label);
    return overrides;
  };
  Check({{with("{image: 'jpg;png', label: {field: json/label}}", "WebDataset"), ""},
         {with("{label: {offset: -1}}", "TFRecord"), ""},
         {with("{image: image.bytes, label: {field: fine_label}}", "Parquet"), ""},
         {with("{label: {offset: -1}}", "Auto"), ""},
         {with("{label: {offset: -1}}", "IDX"), "spec.dataset.fields: is not taken by IDX"},
         {with("{image: x}", "ImageFolder"), "spec.dataset.fields: is not taken by ImageFolder"},
         {with("{image: 'a b'}", "MDS"), "spec.dataset.fields.image: must be"},
         {with("{label: {offset: 1000001}}", "MDS"), "spec.dataset.fields.label.offset: must be"},
         {with("{label: {offset: 1}}", "MDS", "{type: Int64}"),
          "spec.dataset.fields.label.offset: is added to classes alone"},
         {with("{label: {field: a}}", "MDS", "{type: Int64, field: b}"),
          "spec.dataset.label.field: says what spec.dataset.fields.label.field says"},
         {{"dataset.fields={image: x}"}, "spec.dataset.fields: is not taken by"}});
}

TEST(RulesTest, IndexOfADataset) {
  const auto with = [](const char* index, const char* format) {
    return std::vector<std::string>{"dataset.uri=file:///data",
                                    std::string("dataset.format=") + format,
                                    std::string("dataset.index=") + index};
  };
  Check({{with("{uri: 's3://bucket/index'}", "TFRecord"), ""},
         {with("{uri: 'file:///data/_index.hetero', build: Never}", "Auto"), ""},
         {with("{build: Always}", "WebDataset"), ""},
         {with("{uri: 's3://bucket'}", "TFRecord"), "spec.dataset.index.uri: must be"},
         {with("{uri: 's3://bucket/a/'}", "TFRecord"), "spec.dataset.index.uri: must be"},
         {{"dataset={uri: 'file:///a', index: {uri: 'file:///i'}, "
           "validation: {uri: 'file:///b', index: {uri: 'file:///i'}}}"},
          "spec.dataset.validation.index.uri: names the index of the training set"},
         {{"dataset={uri: 'file:///a', index: {uri: 'file:///i'}, "
           "validation: {uri: 'file:///b', index: {uri: 'file:///j'}}}"},
          ""},
         {with("{build: Sometimes}", "RecordIO"), "spec.dataset.index.build: must be one of"},
         {with("{uri: 'https://host/index'}", "RecordIO"), "spec.dataset.index.uri: must be"},
         {with("{build: Always}", "MDS"), "spec.dataset.index: is taken only by WebDataset"},
         {with("{}", "ImageFolder"), "spec.dataset.index: is taken only by WebDataset"},
         {{"dataset.index={}"}, "spec.dataset.index: is taken only by WebDataset"}});
}

TEST(RulesTest, Training) {
  Check(
      {{{"training.maxSteps="}, "spec.training: needs epochs, maxSteps or both"},
       {{"training.maxSteps=", "training.epochs=1"}, ""},
       {{"training.epochs=1"}, ""},
       {{"training.batchSizePerWorker=0"}, "spec.training.batchSizePerWorker: must be at least 1"},
       {{"training.batchSizePerWorker=1.5"}, "must be a whole number, got 1.5"},
       {{"training.seed=9223372036854775807"}, ""},
       {{"training.seed=9223372036854775808"}, "spec.training.seed: must fit 64 bits"},
       {{"training.seed=99999999999999999999999"}, "spec.training.seed: must fit 64 bits"},
       {{"training.maxSteps=1e3"}, "spec.training.maxSteps: must be a whole number"},
       {{"training.optimizer.learningRate=.nan"},
        "spec.training.optimizer.learningRate: must be a number"},
       {{"training.optimizer.learningRate=-1"}, "learningRate: must be at least 0"},
       {{"training.optimizer.betas=[0.9]"}, "betas: has 1 entries; at least 2"},
       {{"training.optimizer.betas=[0.9, 1]"}, "betas[1]: must be at least 0 and below 1, got 1"},
       {{"training.optimizer.epsilon=0"}, "epsilon: must be above 0, got 0"},
       {{"training.optimizer.name=Adam"}, "momentum: is taken only when name is SGD"},
       {{"training.optimizer={name: AdamW}"}, ""},
       {{"training.loss.name=MSE"}, "spec.training.loss.name: must be CrossEntropy, got 'MSE'"},
       {{"training.loss.labelSmoothing=2"}, "labelSmoothing: must be at least 0 and at most 1"},
       {{"training.schedule={name: Step}"}, "schedule.stepEpochs: is required when name is Step"},
       {{"training.schedule={name: Step, stepEpochs: 30}"}, ""},
       {{"training.schedule={name: Cosine, stepEpochs: 30}"}, "stepEpochs: is taken only when"},
       {{"training.gradientClipNorm=0"}, "gradientClipNorm: must be above 0"},
       {{"training.checkpoint={}"}, "spec.training.checkpoint.uri: is required"},
       {{"training.checkpoint={uri: 'synthetic://'}"}, "checkpoint.uri: must be file:///path"},
       {{"training.evaluation={everyEpochs: 1}"}, "needs spec.dataset.validation"},
       {{"training.evaluation={everyEpochs: 1}", "dataset.validation={uri: 'file:///v'}"}, ""},
       {{"training.evaluation={}"}, "needs exactly one of everyEpochs and everySteps"},
       {{"training.evaluation={everyEpochs: 1, everySteps: 2}"}, "needs exactly one of"},
       {{"training.parallelism.partitions=0"}, "partitions: must be at least 1"}});
}

TEST(RulesTest, Parallelism) {
  const std::string two = "training.parallelism={partitions: 2, microbatches: 4}";
  Check({{{two, "roles.gpu.replicas=4", "roles.gpu.gpusPerReplica=1"}, ""},
         {{two, "roles.gpu.replicas=1", "roles.gpu.gpusPerReplica=8"}, ""},
         {{two, "roles.gpu.replicas=2", "roles.gpu.gpusPerReplica=0"}, ""},
         {{two, "roles.gpu.replicas=3", "roles.gpu.gpusPerReplica=1"},
          "spec.training.parallelism.partitions: must divide the number of ranks of all GPUWorkers "
          "(3), got 2"},
         {{"training.parallelism.microbatches=2"},
          "spec.training.parallelism.microbatches: is taken only with partitions above 1"},
         {{two, "roles.gpu.replicas=2", "training.batchSizePerWorker=1"},
          "spec.training.parallelism.microbatches: must be at most batchSizePerWorker x partitions "
          "(2), got 4"}});
}

TEST(RulesTest, Model) {
  Check(
      {{{"training.model={torchScript: 'file:///m.pt'}"}, ""},
       {{"training.model={plugin: /p/libm.so, name: net}"}, ""},
       {{"training.model={name: mlp, weights: 'file:///w.safetensors'}"}, ""},
       {{"training.model={name: resnet18, weights: 'file:///w', exclude: [fc], freeze: [layer1.*, "
         "'*.bias']}"},
        ""},
       {{"training.model={name: resnet18, exclude: [fc]}"},
        "spec.training.model.exclude: is taken only with weights"},
       {{"training.model={torchScript: 'file:///m.pt', freeze: [fc]}"},
        "spec.training.model.freeze: is not taken with torchScript; use a built-in model or a "
        "plugin"},
       {{"training.model={name: vit_b_16, freeze: [encoder]}", "roles.gpu.replicas=2",
         "training.parallelism.partitions=2"},
        "spec.training.model.freeze: is not taken with partitions above 1"},
       {{"training.model={name: resnet18, freeze: ['layer[12]']}"},
        "spec.training.model.freeze[0]: must be a tensor's or a module's name such as "
        "layer1.0.bn1 or fc; \"*\" stands for any characters, got 'layer[12]'"},
       {{"training.model={name: resnet18, freeze: []}"}, "freeze: has 0 entries; at least 1"},
       {{"training.model={name: resnet18, freeze: fc}"}, "freeze: must be a list, got the string"},
       {{"training.model={}"}, "spec.training.model: has no fields; give some, or leave it out"},
       {{"training.model="},
        "spec.training.model: needs one of {name}, {torchScript} and {plugin, name}, or "
        "spec.training.script in its place"},
       {{"training.model={plugin: /p}"}, "plugin needs name"},
       {{"training.model={name: a, torchScript: 'file:///m.pt'}"}, "needs exactly one of"},
       {{"training.model={name: ''}"}, "spec.training.model.name: must not be empty"},
       {{"training.model=mlp"}, "spec.training.model: must be a map of fields, got the string"}});
}

// A script in the place of the model, and what the script decides in the place of the manifest.
std::vector<std::string> WithScript(std::vector<std::string> overrides) {
  const std::vector<std::string> base = {"training.model=", "training.optimizer=",
                                         "training.script={command: [python3, train.py, '']}"};
  overrides.insert(overrides.begin(), base.begin(), base.end());
  return overrides;
}

TEST(RulesTest, Script) {
  Check({{WithScript({"training.script.workingDirectory=/app"}), ""},
         {WithScript({"training.optimizer={name: SGD, learningRate: 0.01}"}), ""},
         {WithScript({"training.checkpoint={uri: 's3://bucket/ck', everySteps: 5}"}), ""},
         {WithScript({"training.script={}"}), "spec.training.script.command: is required"},
         {WithScript({"training.script.command=[]"}), "command: has 0 entries; at least 1"},
         {WithScript({"training.script.command=['', train.py]"}),
          "spec.training.script.command: begins with an empty entry"},
         {WithScript({"training.script.command=[python3, train.py, --lr, 0.1]"}),
          "spec.training.script.command[3]: must be a string: write \"0.1\""},
         {WithScript({"training.script.command=python3 train.py"}),
          "spec.training.script.command: must be a list, got the string"},
         {WithScript({"training.script.command=['" + std::string(4097, 'a') + "']"}),
          "command[0]: has 4097 characters; at most 4096"},
         {WithScript({"training.script.workingDirectory=''"}),
          "spec.training.script.workingDirectory: must not be empty"},
         {WithScript({"training.script.cwd=/app"}), "script has no field 'cwd'"}});
}

TEST(RulesTest, BesideAScriptWhatItDecidesIsRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"model", "{name: mlp}"},       {"loss", "{labelSmoothing: 0.1}"},
      {"optimizer", "{name: AdamW}"}, {"optimizer", "{betas: [0.9, 0.9]}"},
      {"schedule", "{name: Cosine}"}, {"precision", "BF16"},
      {"gradientClipNorm", "1"},      {"evaluation", "{everyEpochs: 1}"},
      {"stopOnNonFinite", "Skip"},    {"parallelism", "{partitions: 2}"},
  };
  for (const auto& [field, value] : refused) {
    EXPECT_THAT(
        ErrorsOf(WithScript({"training." + field + "=" + value,
                             "dataset.validation={uri: 'file:///v'}", "roles.gpu.replicas=2"})),
        ::testing::MatchesRegex("spec.training." + field +
                                ": is not taken beside script, [^;]*; leave it out.*\n"))
        << field;
  }
  const std::string checkpoint = "training.checkpoint={uri: 'file:///ck', everySteps: 5, ";
  Check({{WithScript({checkpoint + "keep: 3}"}),
          "spec.training.checkpoint.keep: is not taken beside script, which saves itself"},
         {WithScript({checkpoint + "resume: Never}"}),
          "spec.training.checkpoint.resume: is not taken beside script, which loads itself"},
         {WithScript({checkpoint + "lock: None}"}),
          "spec.training.checkpoint.lock: is not taken beside script, which saves itself"},
         {WithScript({"training.model={}"}), "spec.training.model: has no fields"}});
}

TEST(RulesTest, ATemplateRunsNoOtherProgramThanTheScript) {
  const std::string gpu =
      "roles.gpu.template={spec: {containers: [{name: sidecar, command: [a]}, "
      "{name: runtime, image: my/train";
  const std::string cpu =
      "roles.cpu.template={spec: {containers: [{name: runtime, command: [a]}]}}";
  const std::string path = "spec.roles[2].template.spec.containers[1].";
  Check(
      {{WithScript({gpu + "}]}}", cpu}), ""},
       {{gpu + ", command: [bash]}]}}"}, ""},
       {WithScript({gpu + ", workingDir: /app}]}}"}), ""},
       {WithScript({gpu + ", command: null}]}}"}), ""},
       {WithScript({gpu + ", command: [bash]}]}}"}), path + "command: is not taken beside script"},
       {WithScript({gpu + ", args: [x]}]}}"}), path + "args: is not taken beside script"}});
}

TEST(RulesTest, Roles) {
  Check({{{"roles.cpu.type=Head"}, "spec.roles: needs exactly one role of type Head, has 2"},
         {{"roles.head.type=CPUWorker"}, "spec.roles: needs exactly one role of type Head, has 0"},
         {{"roles.gpu.type=CPUWorker"}, "spec.roles: needs at least one role of type GPUWorker"},
         {{"roles=[{name: head, type: Head}]"}, "spec.roles: has 1 entries; at least 2"},
         {{"roles=[{name: head, type: Head}, {name: g, type: GPUWorker}]"}, ""},
         {{"roles.head.replicas=2"}, "spec.roles[0].replicas: must be 1 for the Head, got 2"},
         {{"roles.gpu.replicas=0"}, "spec.roles[2].replicas: must be at least 1 for a GPUWorker"},
         {{"roles.cpu.replicas=-1"}, "spec.roles[1].replicas: must be at least 0"},
         {{"roles.cpu.replicas=10001"}, "spec.roles[1].replicas: must be at least 0 and at most"},
         {{"roles.cpu.replicas=0"}, ""},
         {{"roles.cpu.minReplicas=0", "roles.cpu.maxReplicas=8"}, ""},
         {{"roles.cpu.minReplicas=3"},
          "spec.roles[1].minReplicas: must be at most replicas (2), got 3"},
         {{"roles.cpu.maxReplicas=1"}, "spec.roles[1].maxReplicas: must be at least replicas (2)"},
         {{"roles.gpu.minReplicas=1"}, "spec.roles[2].minReplicas: is taken only by a CPUWorker"},
         {{"roles.head.maxReplicas=1"}, "spec.roles[0].maxReplicas: is taken only by a CPUWorker"},
         {{"roles.cpu.gpusPerReplica=1"}, "gpusPerReplica: is taken only by a GPUWorker"},
         {{"roles.gpu.gpusPerReplica=0"}, ""},
         {{"roles.gpu.pricePerHour=2.5"}, ""},
         {{"roles.gpu.pricePerHour=$2"}, "pricePerHour: must be a decimal number"},
         {{"roles.gpu.pricePerHour=.5"}, "pricePerHour: must be a decimal number"},
         {{"roles.gpu={name: gpu, type: GPUWorker, pricePerHour: 2.5}"},
          "pricePerHour: must be a string: write \"2.5\""}});
}

TEST(RulesTest, FailureRules) {
  Check(
      {{{"roles.gpu.failureRules=[{action: Ignore, onReason: Disruption}]"}, ""},
       {{"roles.gpu.failureRules=[{action: FailJob, onExitCodes: {operator: In, values: [1, 2]}}]"},
        ""},
       {{"roles.gpu.failureRules=[{action: FailJob}]"}, "failureRules[0]: needs exactly one of"},
       {{"roles.gpu.failureRules=[{onReason: Evicted}]"}, "failureRules[0].action: is required"},
       {{"roles.gpu.failureRules=[{action: FailJob, onExitCodes: {operator: In, values: []}}]"},
        "onExitCodes.values: has 0 entries"},
       {{"roles.gpu.failureRules=[{action: FailJob, onExitCodes: {operator: In, values: [3, 3]}}]"},
        "spec.roles[2].failureRules[0].onExitCodes.values[1]: 3 is given twice"},
       {{"roles.gpu.failureRules=[{action: FailJob, onExitCodes: {operator: In, values: [0]}}]"},
        "values[0]: must be at least 1 and at most 255"},
       {{"roles.gpu.failureRules=[{action: Retry, onReason: OOM}]"},
        "onReason: must be one of OOMKilled, Evicted, Disruption"}});
}

TEST(RulesTest, RunPolicyAndTheRest) {
  Check({{{"runPolicy={managedBy: kueue.x-k8s.io/multikueue, suspend: true}"}, ""},
         {{"managedBy=kueue.x-k8s.io/multikueue"}, ""},
         {{"managedBy=a.b/c", "runPolicy.managedBy=a.b/c"}, "managedBy: takes the place of"},
         {{"managedBy=kueue"}, "managedBy: must be a domain-prefixed path"},
         {{"runPolicy.managedBy=kueue"}, "managedBy: must be a domain-prefixed path"},
         {{"runPolicy.suspend=yes"}, "runPolicy.suspend: must be true or false"},
         {{"runPolicy.activeDeadlineSeconds=0"}, "activeDeadlineSeconds: must be at least 1"},
         {{"runPolicy.startupDeadlineSeconds=0"}, "startupDeadlineSeconds: must be at least 1"},
         {{"runPolicy.stallTimeoutSeconds=0"}, "stallTimeoutSeconds: must be at least 1"},
         {{"runPolicy.stopGraceSeconds=-1"}, "stopGraceSeconds: must be at least 0"},
         {{"runPolicy.memberTimeoutSeconds=0"}, "memberTimeoutSeconds: must be at least 1"},
         {{"runPolicy.maxRestarts=-1"}, "maxRestarts: must be at least 0"},
         {{"runPolicy.maxDollars='250.00'"}, ""},
         {{"runPolicy.maxDollars='-1'"}, "runPolicy.maxDollars: must be a decimal number"},
         {{"runPolicy.maxDollars=250"}, ""},
         {{"runPolicy.ttlSecondsAfterFinished=0"}, ""},
         {{"network.tls=Off"}, "spec.network.tls: must be one of Enabled, Disabled"},
         {{"autoscaling=Enabled"}, ""},
         {{"output.uri=synthetic://"}, "spec.output.uri: must be file:///path"},
         {{"output={}"}, "spec.output.uri: is required"}});
}

TEST(RulesTest, BrokenObjectsDoNotCauseFollowUpErrors) {
  EXPECT_EQ(ErrorsOf({"roles.gpu.type=GPU"}),
            "spec.roles[2].type: must be one of Head, CPUWorker, GPUWorker, got the string 'GPU' "
            "(line 17)\n");
  EXPECT_EQ(ErrorsOf({"training={model: {name: mlp}, batchSizePerWorker: 4, epochs: many}"}),
            "spec.training.epochs: must be a whole number, got the string 'many' (line 10)\n");
}

}  // namespace
}  // namespace hetero::api
