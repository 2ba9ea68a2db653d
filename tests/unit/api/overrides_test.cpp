#include "api/overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/api/test_manifest.h"

namespace hetero::api {
namespace {

using ::testing::HasSubstr;

HeteroTrainingJob With(const std::vector<std::string>& overrides) {
  const ManifestResult result = ParseManifest(kSmallest, overrides);
  EXPECT_EQ(FormatErrors(result.errors), "");
  return result.job;
}

TEST(OverridesTest, RolesByName) {
  const Role cpu = With({"roles.cpu.replicas=3"}).spec.roles[1];
  EXPECT_EQ(cpu.replicas, 3);
  EXPECT_EQ(cpu.max_replicas, 3);  // overrides come before defaults
}

TEST(OverridesTest, ListEntriesByIndex) {
  EXPECT_EQ(With({"pipeline.0.kernelSize=5"}).spec.pipeline[0].kernel_size, 5);
  EXPECT_EQ(With({"pipeline[0].kernelSize=7"}).spec.pipeline[0].kernel_size, 7);
  EXPECT_EQ(With({"roles[1].replicas=4"}).spec.roles[1].replicas, 4);
}

TEST(OverridesTest, PathsFromTheRoot) {
  const HeteroTrainingJob job =
      With({"spec.training.seed=5", "metadata.name=other", "metadata.labels.example.com/team=3"});
  EXPECT_EQ(job.spec.training.seed, 5);
  EXPECT_EQ(job.metadata.name, "other");
  EXPECT_EQ(job.metadata.labels.at("example.com/team"), "3");
}

TEST(OverridesTest, MissingParentsAreCreated) {
  const Spec spec =
      With({"training.checkpoint.uri=file:///tmp/c", "output.uri=file:///tmp/o"}).spec;
  ASSERT_TRUE(spec.training.checkpoint.has_value());
  EXPECT_EQ(spec.training.checkpoint->uri, "file:///tmp/c");
  EXPECT_EQ(spec.training.checkpoint->keep, 2);
  EXPECT_EQ(spec.output->uri, "file:///tmp/o");
}

TEST(OverridesTest, ValuesAreYaml) {
  const Spec spec =
      With({"pipeline=[{op: Decode}, {op: CenterCrop, size: {height: 8, width: 9}}]",
            "training.optimizer={name: Adam, betas: [0.8, 0.99]}", "dataset.image.height=8"})
          .spec;
  ASSERT_EQ(spec.pipeline.size(), 2);
  EXPECT_EQ(spec.pipeline[1].size, (Size{8, 9}));
  EXPECT_EQ(spec.training.optimizer.name, OptimizerKind::kAdam);
  EXPECT_EQ(spec.training.optimizer.betas, (std::vector<double>{0.8, 0.99}));
  EXPECT_EQ(spec.dataset.image->height, 8);
}

TEST(OverridesTest, StringFieldsTakeTheTextAsItStands) {
  EXPECT_EQ(With({"roles.gpu.pricePerHour=2.50"}).spec.roles[2].price_per_hour, "2.50");
  EXPECT_EQ(With({"roles.gpu.pricePerHour='2.50'"}).spec.roles[2].price_per_hour, "2.50");
}

TEST(OverridesTest, NothingRemovesTheField) {
  const Spec spec = With({"training.maxSteps=", "training.epochs=2"}).spec;
  EXPECT_EQ(spec.training.max_steps, std::nullopt);
  EXPECT_EQ(spec.training.epochs, 2);
}

TEST(OverridesTest, PodTemplatesAreOpen) {
  EXPECT_EQ(With({"roles.cpu.template.spec.containers=[{name: runtime}]",
                  "roles.cpu.template.spec.containers[0].image=a:1"})
                .spec.roles[1]
                .pod_template,
            R"({"spec":{"containers":[{"image":"a:1","name":"runtime"}]}})");
}

TEST(OverridesTest, LaterOverridesWin) {
  EXPECT_EQ(With({"training.seed=1", "training.seed=2"}).spec.training.seed, 2);
}

TEST(OverridesTest, MistakesNameWhatWouldDo) {
  const std::pair<const char*, const char*> kCases[] = {
      {"roles.cpu.replcas=3", "spec.roles[1] has no field 'replcas'; did you mean replicas?"},
      {"trainning.seed=3", "spec has no field 'trainning'; did you mean training?"},
      {"roles.cpux.replicas=3", "no entry named 'cpux'; it has head, cpu, gpu"},
      {"roles[3].replicas=3", "spec.roles has 3 entries"},
      {"pipeline.9.repeat=3", "spec.pipeline has 2 entries"},
      {"pipeline.first.repeat=3", "'first' is no index into spec.pipeline"},
      {"training.seed.x=3", "spec.training.seed is a number and has no field 'x'"},
      {"training.seed", "write it as path=value"},
      {"=3", "write it as path=value"},
      {"", "override: override: write it as path=value"},
      {"pipeline=[{", "is not valid YAML"},
      {"training.seed=many", "must be a whole number, got the string 'many'"},
      {"training.epochs=0", "spec.training.epochs: must be at least 1, got 0"},
  };
  for (const auto& [override_text, wanted] : kCases) {
    EXPECT_THAT(ErrorsOf({override_text}), HasSubstr(wanted)) << override_text;
  }
}

}  // namespace
}  // namespace hetero::api
