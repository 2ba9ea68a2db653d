#include "runtime/pipeline/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/pipeline/crop.h"
#include "runtime/pipeline/flip.h"
#include "tests/unit/runtime/pipeline/fixtures.h"

namespace hetero::pipeline {
namespace {

using api::OperatorKind;
using job::Split;
using Specs = std::vector<api::OperatorSpec>;
using ::testing::HasSubstr;

api::OperatorSpec For(std::vector<std::string> views, api::OperatorSpec spec) {
  spec.views = std::move(views);
  return spec;
}

std::unique_ptr<Pipeline> Made(const Specs& specs, const api::ImageShape& input, int32_t view = 0,
                               int32_t count = 1, std::string_view name = api::kImageView) {
  auto one = Pipeline::Create(specs, input, Split::kTrain, base::Clock::Real(), 0, name);
  EXPECT_TRUE(one.ok()) << one.status();
  return one.ok() ? MakeViews(*std::move(one), view, count) : nullptr;
}

std::vector<uint8_t> Bytes(const Pipeline& pipeline, const source::RawSample& sample,
                           const SampleKey& key) {
  std::vector<uint8_t> out(static_cast<size_t>(pipeline.output_bytes()));
  const absl::Status status = pipeline.Run(sample, key, out);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

TEST(ViewsTest, OneImageIsThePipelineItself) {
  const auto one = Made({Op(OperatorKind::kHorizontalFlip)}, {4, 5, 3});
  EXPECT_EQ(one->views(), 1);
  EXPECT_EQ(one->output_bytes(), 4 * 5 * 3);
  const Image image = NoiseImage({4, 5, 3});
  int flips = 0;
  for (int64_t id = 0; id < 64; ++id) {
    // The key of a job without views, from before there were any.
    job::RandomStream random(9, 2, id, 0);
    Image expected = image;
    if (random.NextDouble() < 0.5) {
      FlipHorizontally(image.view(), &expected);
      ++flips;
    }
    EXPECT_EQ(Bytes(*one, RawSampleOf(image), {9, 2, id}), expected.bytes);
  }
  EXPECT_GT(flips, 10);
  EXPECT_LT(flips, 54);
}

// Each picture is what the operators give that draw from the documented streams: the counter's bits
// are philox_test's.
TEST(ViewsTest, EachIsThePipelineWithItsOwnKey) {
  const Specs specs = {Op(OperatorKind::kHorizontalFlip), Op(OperatorKind::kVerticalFlip)};
  const auto views = Made(specs, {4, 5, 3}, /*view=*/2, /*count=*/3);
  EXPECT_EQ(views->views(), 3);
  EXPECT_EQ(views->output(), (api::ImageShape{4, 5, 3}));
  EXPECT_EQ(views->output_bytes(), 3 * 4 * 5 * 3);
  const Image image = NoiseImage({4, 5, 3});
  std::set<std::vector<uint8_t>> seen;
  for (int64_t id = 0; id < 32; ++id) {
    std::vector<uint8_t> expected;
    for (int32_t i = 0; i < 3; ++i) {
      Image current = image, next;
      for (int32_t position = 0; position < 2; ++position) {
        job::RandomStream random(9, 2, id, position, 2 * 64 + i);
        if (random.NextDouble() >= 0.5) continue;
        (position == 0 ? FlipHorizontally : FlipVertically)(current.view(), &next);
        std::swap(current, next);
      }
      expected.insert(expected.end(), current.bytes.begin(), current.bytes.end());
    }
    const std::vector<uint8_t> found = Bytes(*views, RawSampleOf(image), {9, 2, id});
    EXPECT_EQ(found, expected) << id;
    seen.insert(found);
  }
  EXPECT_GT(seen.size(), 20u) << "of 64 that there are";
}

// Where the first operator looks at a part of the picture only, each view decodes its own.
TEST(ViewsTest, CropsOfAJpegAreDecodedWithTheirKeys) {
  source::RawSample sample;
  sample.encoding = source::Encoding::kJpeg;
  sample.bytes = ReadGolden("420.jpg");
  const Specs specs = {SizedOp(OperatorKind::kRandomResizedCrop, 9, 8)};
  const auto one = Made(specs, {0, 0, 3});
  const auto two = Made(specs, {0, 0, 3}, 0, 2);
  std::vector<uint8_t> expected = Bytes(*one, sample, {1, 2, 3});
  const std::vector<uint8_t> second = Bytes(*one, sample, {1, 2, 3, KeyOfView(0, 1)});
  EXPECT_NE(expected, second);
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(Bytes(*two, sample, {1, 2, 3}), expected);
}

TEST(ViewsTest, KeysDoNotMeet) {
  std::set<int32_t> keys;
  for (int32_t view = 0; view <= 8; ++view) {
    for (int32_t i = 0; i < 64; ++i) keys.insert(KeyOfView(view, i));
  }
  EXPECT_EQ(keys.size(), 9u * 64);
  EXPECT_EQ(*keys.begin(), 0);
  EXPECT_LT(*keys.rbegin(), 1 << 10);
}

// An operator that is for other views is left out, and those behind it draw what they drew.
TEST(ViewsTest, OperatorsOfOtherViewsAreLeftOutAndKeepTheirPositions) {
  const Specs specs = {For({"image"}, SizedOp(OperatorKind::kCenterCrop, 6, 6)),
                       For({"local"}, SizedOp(OperatorKind::kCenterCrop, 2, 4)),
                       Op(OperatorKind::kHorizontalFlip),
                       For({"local", "image"}, Op(OperatorKind::kNormalize))};
  const Image image = NoiseImage({8, 8, 3});
  const auto of_image = Made(specs, {8, 8, 3});
  const auto of_local = Made(specs, {8, 8, 3}, 1, 1, "local");
  EXPECT_EQ(of_image->output(), (api::ImageShape{6, 6, 3}));
  EXPECT_EQ(of_local->output(), (api::ImageShape{2, 4, 3}));
  EXPECT_EQ(of_local->views(), 1);
  EXPECT_FALSE(of_local->conversion().mean.empty());
  for (int64_t id = 0; id < 16; ++id) {
    Image small, expected;
    CropCenter(image.view(), {2, 4}, &small);
    job::RandomStream random(9, 0, id, /*position=*/2, KeyOfView(1, 0));
    expected = small;
    if (random.NextDouble() < 0.5) FlipHorizontally(small.view(), &expected);
    EXPECT_EQ(Bytes(*of_local, RawSampleOf(image), {9, 0, id}), expected.bytes) << id;
  }
}

TEST(ViewsTest, ErrorsNameTheEntryOfTheManifest) {
  const auto one = Pipeline::Create({For({"image"}, SizedOp(OperatorKind::kCenterCrop, 6, 6)),
                                     For({"local"}, Op(OperatorKind::kNormalize)),
                                     For({"local"}, Op(OperatorKind::kHorizontalFlip))},
                                    {8, 8, 3}, Split::kTrain, base::Clock::Real(), 0, "local");
  EXPECT_THAT(std::string(one.status().message()),
              HasSubstr("spec.pipeline[2] (HorizontalFlip) takes uint8 pictures"));
  const auto views = Made({Op(OperatorKind::kHorizontalFlip)}, {4, 5, 3}, 0, 2);
  std::vector<uint8_t> short_of_one(4 * 5 * 3);
  const absl::Status status =
      views->Run(RawSampleOf(NoiseImage({4, 5, 3})), SampleKey{}, short_of_one);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

}  // namespace
}  // namespace hetero::pipeline
