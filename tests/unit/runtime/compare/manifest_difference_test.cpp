#include "runtime/compare/manifest_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/runtime/compare/sample_runs.h"

namespace hetero::compare {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Lines(const std::vector<json>& manifests) {
  std::vector<std::string> lines;
  for (const Difference& difference : ManifestDifferences(manifests)) {
    std::string line = difference.path;
    for (const auto& value : difference.values) absl::StrAppend(&line, " | ", ValueText(value));
    lines.push_back(line);
  }
  return lines;
}

json Spec(const std::string& text) { return {{"spec", json::parse(text)}}; }

TEST(ManifestDifferences, AreNamedByFieldPathBelowSpec) {
  EXPECT_THAT(Lines({Spec(R"({"training": {"seed": 1, "maxSteps": 5}})"),
                     Spec(R"({"training": {"seed": 2, "maxSteps": 5}})")}),
              ElementsAre("training.seed | 1 | 2"));
  EXPECT_THAT(Lines({json{{"metadata", {{"name", "a"}}}}, json{{"metadata", {{"name", "b"}}}}}),
              ElementsAre("metadata.name | a | b"));
}

TEST(ManifestDifferences, OfListsAreNamedByNameOrOperator) {
  EXPECT_THAT(Lines({Spec(R"({"roles": [{"name": "cpu", "replicas": 2}, {"name": "gpu"}]})"),
                     Spec(R"({"roles": [{"name": "cpu", "replicas": 4}, {"name": "gpu"}]})")}),
              ElementsAre("roles[cpu].replicas | 2 | 4"));
  EXPECT_THAT(
      Lines({Spec(R"({"pipeline": [{"op": "Blur"}, {"op": "Blur", "sigma": 1}, {"op": "Flip"}]})"),
             Spec(R"({"pipeline": [{"op": "Blur"}, {"op": "Blur", "sigma": 2}]})")}),
      ElementsAre("pipeline[Blur#2].sigma | 1 | 2", "pipeline[Flip] | {op: Flip} | -"));
}

TEST(ManifestDifferences, KnowTheOrderOfEntries) {
  EXPECT_THAT(Lines({Spec(R"({"pipeline": [{"op": "Blur"}, {"op": "Flip"}]})"),
                     Spec(R"({"pipeline": [{"op": "Flip"}, {"op": "Blur"}]})")}),
              ElementsAre("pipeline (order) | [Blur, Flip] | [Flip, Blur]"));
}

TEST(ManifestDifferences, TakeListsOfPlainValuesAsAWhole) {
  EXPECT_THAT(Lines({Spec(R"({"mean": [0.5, 0.5]})"), Spec(R"({"mean": [0.5, 0.4, 0.5]})")}),
              ElementsAre("mean | [0.5, 0.5] | [0.5, 0.4, 0.5]"));
}

TEST(ManifestDifferences, TakeOtherShapesAsTheyAre) {
  EXPECT_THAT(Lines({Spec(R"({"a": {"b": 1}, "c": [1]})"), Spec(R"({"a": 3, "c": null})")}),
              ElementsAre("a | {b: 1} | 3", "c | [1] | null"));
  EXPECT_THAT(Lines({Spec(R"({"l": [{"x": 1}, 5]})"), Spec(R"({"l": [{"x": 2}]})")}),
              ElementsAre("l[0].x | 1 | 2", "l[1] | 5 | -"));
}

TEST(ManifestDifferences, CompareAllRunsAtOnce) {
  const auto with = [](int seed) { return Spec(absl::StrCat(R"({"seed": )", seed, "}")); };
  EXPECT_THAT(Lines({with(1), with(1), with(3)}), ElementsAre("seed | 1 | 1 | 3"));
  EXPECT_THAT(Lines({with(1), with(1), with(1)}), IsEmpty());
  EXPECT_THAT(Lines({with(1)}), IsEmpty());
}

// The report of an older program, in which a field was not written down.
TEST(WithDefaults, MakesNoDifferenceOfADefaultThatIsWrittenDown) {
  const json without = ReportOfSlowRun()["config"];
  json with = without;
  with["spec"]["training"]["gradientAccumulationSteps"] = 1;
  with["spec"]["roles"][2]["replicas"] = 1;
  EXPECT_EQ(Lines({without, with}).size(), 2u);
  EXPECT_THAT(Lines(WithDefaults({without, with})), IsEmpty());
}

TEST(WithDefaults, TakesBoundsThatFollowFromReplicasForNoDifference) {
  const json two = ReportOfSlowRun()["config"];
  json four = two;
  four["spec"]["roles"][1]["replicas"] = 4;
  EXPECT_THAT(Lines(WithDefaults({two, four})), ElementsAre("roles[cpu].replicas | 2 | 4"));
  four["spec"]["roles"][1]["minReplicas"] = 1;
  EXPECT_THAT(Lines(WithDefaults({two, four})),
              ElementsAre("roles[cpu].minReplicas | - | 1", "roles[cpu].replicas | 2 | 4"));
}

TEST(WithDefaults, LeavesWhatThisProgramCannotReadAsItIs) {
  json newer = ReportOfSlowRun()["config"];
  newer["spec"]["aFieldOfTomorrow"] = 3;
  EXPECT_THAT(Lines(WithDefaults({ReportOfSlowRun()["config"], newer})),
              ElementsAre("aFieldOfTomorrow | - | 3"));
}

}  // namespace
}  // namespace hetero::compare
