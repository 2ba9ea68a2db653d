#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/runtime/pipeline/fixtures.h"

namespace hetero::pipeline {
namespace {

using api::OperatorKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<TensorConversion> ConversionOf(const std::vector<api::OperatorSpec>& operators,
                                              const api::ImageShape& input) {
  auto pipeline = Pipeline::Create(operators, input, job::Split::kTrain);
  if (!pipeline.ok()) return pipeline.status();
  return (*pipeline)->conversion();
}

api::OperatorSpec Cast(api::ElementType type) {
  api::OperatorSpec spec = Op(OperatorKind::kCast);
  spec.type = type;
  return spec;
}

api::OperatorSpec Normalize(std::vector<double> mean, std::vector<double> std) {
  api::OperatorSpec spec = Op(OperatorKind::kNormalize);
  spec.mean = std::move(mean);
  spec.std = std::move(std);
  return spec;
}

void ExpectRefused(const std::vector<api::OperatorSpec>& operators, const api::ImageShape& input,
                   const std::string& part) {
  const auto result = ConversionOf(operators, input);
  ASSERT_FALSE(result.ok()) << part;
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr(part));
}

TEST(Conversion, ScalesToOneWithoutNormalize) {
  for (const auto& operators : std::vector<std::vector<api::OperatorSpec>>{
           {}, {Cast(api::ElementType::kFloat32)}, {Cast(api::ElementType::kUint8)}}) {
    const auto conversion = ConversionOf(operators, {8, 8, 3});
    ASSERT_TRUE(conversion.ok()) << conversion.status();
    EXPECT_TRUE(conversion->unit_scale);
    EXPECT_TRUE(conversion->mean.empty());
    EXPECT_TRUE(conversion->std.empty());
  }
}

TEST(Conversion, DefaultsDependOnTheChannels) {
  const auto colour = ConversionOf({Normalize({}, {})}, {8, 8, 3});
  ASSERT_TRUE(colour.ok());
  EXPECT_THAT(colour->mean, ElementsAre(0.485f, 0.456f, 0.406f));
  EXPECT_THAT(colour->std, ElementsAre(0.229f, 0.224f, 0.225f));
  const auto grey = ConversionOf({Normalize({}, {})}, {8, 8, 1});
  ASSERT_TRUE(grey.ok());
  EXPECT_THAT(grey->mean, ElementsAre(0.5f));
  EXPECT_THAT(grey->std, ElementsAre(0.5f));
  // Channels are counted after Grayscale.
  const auto turned = ConversionOf({Op(OperatorKind::kGrayscale), Normalize({}, {})}, {8, 8, 3});
  ASSERT_TRUE(turned.ok());
  EXPECT_THAT(turned->mean, ElementsAre(0.5f));
}

TEST(Conversion, OneValueServesAllChannels) {
  const auto conversion = ConversionOf({Cast(api::ElementType::kFloat32), Normalize({0.25}, {0.1}),
                                        Cast(api::ElementType::kFloat32)},
                                       {8, 8, 3});
  ASSERT_TRUE(conversion.ok()) << conversion.status();
  EXPECT_THAT(conversion->mean, ElementsAre(0.25f, 0.25f, 0.25f));
  EXPECT_THAT(conversion->std, ElementsAre(0.1f, 0.1f, 0.1f));
}

TEST(Conversion, RefusesWhatDoesNotFit) {
  ExpectRefused({Normalize({0.1, 0.2}, {0.1, 0.2})}, {8, 8, 3},
                "spec.pipeline[0] (Normalize) mean has 2");
  ExpectRefused({Normalize({0.1, 0.2, 0.3}, {0.1, 0.2, 0.3})}, {8, 8, 1}, "mean has 3 values");
  ExpectRefused({Normalize({0.1}, {})}, {8, 8, 3}, "std: must have as many entries as mean");
  // More than 0 in the manifest, and 0 as float32.
  ExpectRefused({Normalize({0.1}, {1e-60})}, {8, 8, 3}, "std must be greater than 0");
  ExpectRefused({Normalize({}, {}), Normalize({}, {})}, {8, 8, 3}, "spec.pipeline[1] (Normalize)");
  ExpectRefused({Op(OperatorKind::kCast)}, {8, 8, 3}, "type: is required for Cast");
  ExpectRefused({Normalize({}, {}), Cast(api::ElementType::kUint8)}, {8, 8, 3}, "lose precision");
}

TEST(Conversion, RefusesUint8OperatorsAfterIt) {
  ExpectRefused({Normalize({}, {}), Op(OperatorKind::kHorizontalFlip)}, {8, 8, 3},
                "spec.pipeline[1] (HorizontalFlip) takes uint8 pictures");
  ExpectRefused({Cast(api::ElementType::kFloat32), SizedOp(OperatorKind::kResize, 4, 4)}, {8, 8, 3},
                "spec.pipeline[1] (Resize)");
}

}  // namespace
}  // namespace hetero::pipeline
