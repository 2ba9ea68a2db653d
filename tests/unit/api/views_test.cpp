#include "api/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/api/test_manifest.h"

namespace hetero::api {
namespace {

using ::testing::HasSubstr;

// The smallest manifest with a script, which may have several views.
ManifestResult JobOfAScript(const std::vector<std::string>& more) {
  std::vector<std::string> overrides = {
      "training.model=", "training.optimizer=", "training.script={command: [python3, train.py]}"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return ParseManifest(kSmallest, overrides);
}

std::string ErrorsOfAScript(const std::vector<std::string>& more) {
  return FormatErrors(JobOfAScript(more).errors);
}

TEST(ViewsTest, WithoutAnyThereIsOneImage) {
  const Spec spec = ParseManifest(kSmallest).job.spec;
  EXPECT_TRUE(spec.views.empty());
  EXPECT_EQ(ImageViews(spec), 1);
  EXPECT_TRUE(FurtherViews(spec).empty());
  EXPECT_FALSE(HasSeveralViews(spec));
}

TEST(ViewsTest, KeepTheirOrderAndCounts) {
  const ManifestResult result =
      JobOfAScript({"views=[{name: local, count: 6}, {name: image, count: 2}, {name: alone}]",
                    "pipeline.0.views=[local, image]"});
  ASSERT_EQ(FormatErrors(result.errors), "");
  const Spec& spec = result.job.spec;
  EXPECT_EQ(ImageViews(spec), 2);
  const std::vector<View> further = FurtherViews(spec);
  ASSERT_EQ(further.size(), 2u);
  EXPECT_EQ(further[0].name, "local");
  EXPECT_EQ(further[0].count, 6);
  EXPECT_EQ(further[1].name, "alone");
  EXPECT_EQ(further[1].count, 1);
  EXPECT_TRUE(IsFor(spec.pipeline[0], "local"));
  EXPECT_FALSE(IsFor(spec.pipeline[0], "alone"));
  EXPECT_TRUE(IsFor(spec.pipeline[1], "alone"));
  const ManifestResult again = ParseManifest(ToJson(result.job));
  ASSERT_EQ(FormatErrors(again.errors), "");
  EXPECT_EQ(ToJson(again.job), ToJson(result.job));
}

TEST(ViewsTest, OneImageIsForModels) {
  EXPECT_EQ(ErrorsOf({"views=[{name: image}]"}), "");
  EXPECT_EQ(ErrorsOf({"views=[{name: image, count: 1}]", "pipeline.0.views=[image]"}), "");
  EXPECT_EQ(ErrorsOf({"views=[{name: image}]", "pipeline.0.placement=Trainer"}), "");
  EXPECT_THAT(ErrorsOf({"views=[{name: image, count: 2}]"}),
              HasSubstr("spec.views: models take one view of a picture; several are for "
                        "spec.training.script alone"));
  EXPECT_THAT(ErrorsOf({"views=[{name: local}]"}), HasSubstr("spec.views: models take one view"));
}

TEST(ViewsTest, Rules) {
  const auto refused = [](const std::vector<std::string>& overrides, const std::string& says) {
    EXPECT_THAT(ErrorsOfAScript(overrides), HasSubstr(says)) << overrides[0];
  };
  EXPECT_EQ(ErrorsOfAScript({"views=[{name: image, count: 64}, {name: a_1, count: 64}]"}), "");
  refused({"views=[]"}, "spec.views: has 0 entries; at least 1");
  refused({"views=[{count: 2}]"}, "spec.views[0].name: is required");
  refused({"views=[{name: image, count: 0}]"}, "spec.views[0].count: must be at least 1");
  refused({"views=[{name: image, count: 65}]"}, "and at most 64, got 65");
  refused(
      {"views=[{name: a-b}]"},
      "spec.views[0].name: must be lower-case letters, digits and '_', beginning with a letter");
  refused({"views=[{name: a}, {name: b}, {name: a}]"},
          "spec.views[2].name: 'a' is the name of spec.views[0] too");
  for (const char* taken : {"label", "id", "images", "count", "step"}) {
    refused({std::string("views=[{name: ") + taken + "}]"},
            "names something else of a batch; choose another");
  }
  std::string nine;
  for (int i = 0; i < 9; ++i) nine += "{name: v" + std::to_string(i) + "},";
  refused({"views=[" + nine + "]"}, "spec.views: has 9 entries; at most 8");
  refused({"views=[{name: local}]", "pipeline.1.views=[image, lokal]"},
          "spec.pipeline[1].views[1]: 'lokal' is none of spec.views; known are image, local");
  refused({"views=[{name: local}]", "pipeline.0.placement=Trainer"},
          "spec.pipeline[0].placement: cannot be Trainer beside spec.views");
  EXPECT_EQ(ErrorsOfAScript({"views=[{name: local}]", "pipeline.1.placement=Trainer"}), "")
      << "types are converted there anyway";
}

}  // namespace
}  // namespace hetero::api
