#include "api/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/unit/api/test_manifest.h"

namespace hetero::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Paths(const std::vector<FieldError>& errors) {
  std::vector<std::string> paths;
  for (const FieldError& error : errors) paths.push_back(error.path);
  return paths;
}

// The smallest manifest with one piece of its text replaced.
ManifestResult WithText(const std::string& from, const std::string& to) {
  const std::string text = absl::StrReplaceAll(kSmallest, {{from, to}});
  EXPECT_NE(text, kSmallest) << "nothing replaced: " << from;
  return ParseManifest(text);
}

TEST(ManifestTest, SmallestUsefulManifestHasNoErrors) {
  const ManifestResult result = ParseManifest(kSmallest);
  EXPECT_EQ(FormatErrors(result.errors), "");
  const Spec& spec = result.job.spec;
  EXPECT_EQ(result.job.metadata.name, "vit-blur");
  EXPECT_EQ(spec.dataset.uri, "synthetic://");
  EXPECT_EQ(spec.dataset.samples, 64000);
  EXPECT_EQ(spec.dataset.image, (ImageShape{224, 224, 3}));
  ASSERT_EQ(spec.pipeline.size(), 2);
  EXPECT_EQ(spec.pipeline[0].op, OperatorKind::kGaussianBlur);
  EXPECT_EQ(spec.pipeline[0].kernel_size, 11);
  EXPECT_EQ(spec.pipeline[0].sigma, (Range{0.1, 2.0}));
  EXPECT_EQ(spec.pipeline[0].repeat, 10);
  EXPECT_EQ(spec.pipeline[1].op, OperatorKind::kNormalize);
  EXPECT_EQ(spec.training.model.name, "vit_b_16");
  EXPECT_EQ(spec.training.batch_size_per_worker, 64);
  EXPECT_EQ(spec.training.max_steps, 1000);
  EXPECT_EQ(spec.training.optimizer.momentum, 0.9);
  ASSERT_EQ(spec.roles.size(), 3);
  EXPECT_EQ(spec.roles[1].replicas, 2);
  EXPECT_EQ(spec.world_size(), 1);
}

TEST(ManifestTest, DefaultsOfTheDesignAreFilledIn) {
  const Spec spec = ParseManifest(kSmallest).job.spec;
  EXPECT_EQ(spec.dataset.format, DatasetFormat::kAuto);
  EXPECT_EQ(spec.dataset.max_bad_samples, 100);
  EXPECT_EQ(spec.dataset.shuffle.mode, ShuffleMode::kFull);
  EXPECT_EQ(spec.training.last_batch, LastBatch::kKeep);
  EXPECT_EQ(spec.training.loss.name, "CrossEntropy");
  EXPECT_EQ(spec.training.schedule.name, ScheduleKind::kConstant);
  EXPECT_EQ(spec.training.gradient_accumulation_steps, 1);
  EXPECT_EQ(spec.training.precision, Precision::kFp32);
  EXPECT_EQ(spec.roles[0].restart_scope, RestartScope::kPod);
  EXPECT_EQ(spec.roles[1].min_replicas, 2);
  EXPECT_EQ(spec.roles[1].max_replicas, 2);
  EXPECT_EQ(spec.roles[2].gpus_per_replica, 1);
  EXPECT_EQ(spec.roles[0].gpus_per_replica, std::nullopt);
  EXPECT_EQ(spec.run_policy.startup_deadline_seconds, 600);
  EXPECT_EQ(spec.run_policy.member_timeout_seconds, 5);
  EXPECT_EQ(spec.run_policy.max_restarts, 3);
  EXPECT_EQ(spec.run_policy.clean_pod_policy, CleanPodPolicy::kAll);
  EXPECT_EQ(spec.network.tls, Switch::kEnabled);
  EXPECT_EQ(spec.autoscaling, Switch::kDisabled);
}

TEST(ManifestTest, DocumentsThatAreNoJob) {
  struct Case {
    const char* text;
    const char* path;
    const char* reason;
  };
  const Case kCases[] = {
      {"", "manifest", "empty"},
      {"# only a comment\n", "manifest", "empty"},
      {"- a\n- b\n", "manifest", "not a map"},
      {"just words", "manifest", "not a map"},
      {"a: 1\n---\nb: 2\n", "manifest", "2 YAML documents"},
      {"a: [1, 2\nb: 3\n", "line 2, column", "not valid YAML"},
      {"a: 'open", "line 1, column", "not valid YAML"},
  };
  for (const Case& c : kCases) {
    const ManifestResult result = ParseManifest(c.text);
    ASSERT_EQ(result.errors.size(), 1) << c.text;
    EXPECT_THAT(result.errors[0].path, HasSubstr(c.path)) << c.text;
    EXPECT_THAT(result.errors[0].reason, HasSubstr(c.reason)) << c.text;
  }
}

TEST(ManifestTest, DuplicateKeyIsAnError) {
  const ManifestResult result = WithText("batchSizePerWorker: 64", "maxSteps: 64");
  EXPECT_THAT(Paths(result.errors), ElementsAre("spec.training.maxSteps"));
  EXPECT_THAT(result.errors[0].reason, HasSubstr("twice"));
}

TEST(ManifestTest, KindAndVersionAreChecked) {
  EXPECT_EQ(
      FormatErrors(WithText("v1alpha1", "v1").errors),
      "apiVersion: must be training.hetero.dev/v1alpha1, got training.hetero.dev/v1 (line 1)\n");
  EXPECT_THAT(Paths(WithText("kind: HeteroTrainingJob\n", "").errors), ElementsAre("kind"));
  EXPECT_THAT(Paths(WithText("kind: HeteroTrainingJob", "kind: [Job]").errors),
              ElementsAre("kind"));
}

TEST(ManifestTest, MissingSectionsAreNamed) {
  EXPECT_THAT(Paths(ParseManifest("{}").errors),
              ElementsAre("apiVersion", "kind", "metadata", "spec"));
}

TEST(ManifestTest, MissingRequiredFieldsAreNamed) {
  const ManifestResult result = ParseManifest(
      "apiVersion: training.hetero.dev/v1alpha1\nkind: HeteroTrainingJob\n"
      "metadata: {}\nspec: {dataset: {}, training: {}, roles: []}\n");
  EXPECT_THAT(Paths(result.errors),
              ElementsAre("metadata.name", "spec.dataset.uri", "spec.training.batchSizePerWorker",
                          "spec.training.model", "spec.roles", "spec.roles", "spec.roles"));
}

TEST(ManifestTest, NoModelIsMissingWhereThereIsNoTraining) {
  EXPECT_THAT(Paths(ParseManifest(kSmallest, {"training="}).errors), ElementsAre("spec.training"));
  EXPECT_THAT(Paths(ParseManifest(kSmallest, {"training=fast"}).errors),
              ElementsAre("spec.training"));
}

TEST(ManifestTest, EveryErrorIsReportedInManifestOrder) {
  const ManifestResult result = ParseManifest(R"(apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: Bad_Name}
spec:
  training:
    model: {name: resnet18}
    batchSizePerWorker: "64"
    epoch: 3
  roles:
  - {name: head, type: head}
  - {name: gpu, type: GPUWorker, replicas: 3000000000}
  pipeline:
  - {op: Normalize, repeat: 0}
  dataset: {uri: "http://x"}
)");
  EXPECT_EQ(
      FormatErrors(result.errors),
      "metadata.name: must be lower-case letters, digits and '-', beginning with a letter and "
      "ending with a letter or digit, got 'Bad_Name' (line 3)\n"
      "spec.training.batchSizePerWorker: must be a whole number, got the string '64' (line 7)\n"
      "spec.training.epoch: unknown field; did you mean epochs? (line 8)\n"
      "spec.roles[0].type: must be one of Head, CPUWorker, GPUWorker, got the string 'head' "
      "(line 10)\n"
      "spec.roles[1].replicas: must fit 32 bits, got 3000000000 (line 11)\n"
      "spec.pipeline[0].repeat: must be at least 1 and at most 100, got 0 (line 13)\n"
      "spec.dataset.uri: must be synthetic://, file:///path or s3://bucket/prefix (a bucket has 3 "
      "characters or more), or https://host/path of a manifest or of shards, without a query, got "
      "'http://x' (line 14)\n");
}

TEST(ManifestTest, KubernetesOwnKeysAreSkipped) {
  const ManifestResult result = WithText(
      "metadata: {name: vit-blur}",
      "metadata: {name: vit-blur, namespace: ml, uid: 6e1f, generation: 3, resourceVersion: '9',\n"
      "  creationTimestamp: null, managedFields: [{manager: kubectl}], labels: {team: vision}}\n"
      "status: {attempt: 2, whatever: true}");
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_EQ(result.job.metadata.name_space, "ml");
  EXPECT_EQ(result.job.metadata.uid, "6e1f");
  EXPECT_EQ(result.job.metadata.labels.at("team"), "vision");
}

TEST(ManifestTest, UnknownTopLevelField) {
  const ManifestResult result = WithText("spec:", "specs: {}\nspec:");
  EXPECT_EQ(FormatErrors(result.errors), "specs: unknown field; did you mean spec? (line 4)\n");
}

TEST(ManifestTest, NullIsTheSameAsAbsent) {
  EXPECT_THAT(
      WithText("maxSteps: 1000", "maxSteps: 1000\n    epochs: null\n    evaluation: ~").errors,
      IsEmpty());
  EXPECT_THAT(Paths(WithText("model: {name: vit_b_16}", "model: null").errors),
              ElementsAre("spec.training.model"));
}

TEST(ManifestTest, PodTemplateIsKeptAsCompactJson) {
  const ManifestResult result = WithText(
      "replicas: 2}", "replicas: 2, template: {spec: {nodeSelector: {arch: amd64}, a: [1, 2]}}}");
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_EQ(result.job.spec.roles[1].pod_template,
            R"({"spec":{"a":[1,2],"nodeSelector":{"arch":"amd64"}}})");
  EXPECT_THAT(Paths(WithText("replicas: 2}", "template: [1]}").errors),
              ElementsAre("spec.roles[1].template"));
}

TEST(ManifestTest, JsonIsReadToo) {
  const std::string json = ToJson(ParseManifest(kSmallest).job);
  EXPECT_THAT(ParseManifest(json).errors, IsEmpty());
  EXPECT_EQ(
      FormatErrors(ParseManifest(absl::StrReplaceAll(json, {{"GPUWorker", "GPU"}})).errors),
      "spec.roles[2].type: must be one of Head, CPUWorker, GPUWorker, got the string 'GPU'\n");
}

TEST(ManifestTest, TextThatIsNotUtf8IsReportedNotThrown) {
  EXPECT_FALSE(ParseManifest("kind: [\xff]\n").errors.empty());
  const ManifestResult result = WithText("replicas: 2}", "template: {a: \xff}}");
  EXPECT_FALSE(ToJson(result.job).empty());
}

TEST(ManifestTest, AliasesThatExpandWithoutEndAreRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string below = absl::StrCat("*a", i - 1);
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [");
    for (int k = 0; k < 10; ++k) bomb += below + (k < 9 ? ", " : "]\n");
  }
  const ManifestResult result = ParseManifest(bomb);
  ASSERT_FALSE(result.errors.empty());
  EXPECT_THAT(result.errors[0].reason, HasSubstr("expands to too much"));
}

}  // namespace
}  // namespace hetero::api
