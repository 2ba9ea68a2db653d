#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "runtime/pipeline/colour.h"
#include "runtime/pipeline/crop.h"
#include "runtime/pipeline/flip.h"
#include "runtime/pipeline/gaussian_blur.h"
#include "runtime/pipeline/grayscale.h"
#include "tests/unit/runtime/pipeline/fixtures.h"

// Distributions of what random operators draw, over samples 0, 1, 2, ...
namespace hetero::pipeline {
namespace {

constexpr int kDraws = 4000;

TEST(RandomResizedCrop, BoxesFollowTorchvisionsDistribution) {
  const api::Size size{375, 500};
  const api::Range scale{0.08, 1.0};
  const api::Range ratio{3.0 / 4, 4.0 / 3};
  double log_ratio_sum = 0, area_sum = 0;
  int whole_like = 0;
  for (int id = 0; id < kDraws; ++id) {
    job::RandomStream random(7, 0, id, 3);
    const Box box = DrawCrop(size, scale, ratio, random);
    ASSERT_GE(box.top, 0);
    ASSERT_GE(box.left, 0);
    ASSERT_LE(box.top + box.height, size.height);
    ASSERT_LE(box.left + box.width, size.width);
    const double area = double(box.height) * box.width / (375.0 * 500.0);
    const double aspect = double(box.width) / box.height;
    // Sides are rounded to whole pixels, so allow half a pixel per side.
    ASSERT_GT(area, 0.08 * 0.99);
    ASSERT_LE(area, 1.0);
    ASSERT_GT(aspect, 3.0 / 4 * 0.99);
    ASSERT_LT(aspect, 4.0 / 3 * 1.01);
    log_ratio_sum += std::log(aspect);
    area_sum += area;
    whole_like += area > 0.5;
  }
  // Rejection of boxes that do not fit lowers the mean area below (0.08 + 1) / 2.
  EXPECT_GT(area_sum / kDraws, 0.42);
  EXPECT_LT(area_sum / kDraws, 0.54);
  EXPECT_NEAR(log_ratio_sum / kDraws, 0, 0.06);
  EXPECT_GT(whole_like, kDraws / 3);
}

TEST(RandomResizedCrop, FallsBackToTheCentralBox) {
  job::RandomStream random(7, 0, 0, 0);
  // Too flat for any ratio up to 4/3 at full area: full height, width = round(30 * 4 / 3).
  EXPECT_EQ(DrawCrop({30, 300}, {1, 1}, {3.0 / 4, 4.0 / 3}, random), (Box{0, 130, 30, 40}));
  EXPECT_EQ(DrawCrop({300, 30}, {1, 1}, {3.0 / 4, 4.0 / 3}, random), (Box{130, 0, 40, 30}));
  EXPECT_EQ(DrawCrop({20, 20}, {1, 1}, {1, 1}, random), (Box{0, 0, 20, 20}));
}

TEST(RandomResizedCrop, PositionsReachAllBorders) {
  std::map<std::pair<int, int>, int> corners;
  for (int id = 0; id < kDraws; ++id) {
    job::RandomStream random(1, 0, id, 0);
    const Box box = DrawCrop({9, 9}, {64.0 / 81, 64.0 / 81}, {1, 1}, random);
    ASSERT_EQ(box.height, 8);
    ASSERT_EQ(box.width, 8);
    ++corners[{box.top, box.left}];
  }
  ASSERT_EQ(corners.size(), 4u);
  for (const auto& [corner, count] : corners) EXPECT_NEAR(count, kDraws / 4.0, kDraws / 20.0);
}

// How often `op` changes a picture that it could change.
double ChangeRate(const Operator& op) {
  const Image in = NoiseImage({4, 5, 3});
  Image out;
  int changed = 0;
  for (int id = 0; id < kDraws; ++id) {
    job::RandomStream random(3, 1, id, 2);
    EXPECT_TRUE(op.Apply(in.view(), &out, random).ok());
    changed += out.bytes != in.bytes;
  }
  return double(changed) / kDraws;
}

TEST(HorizontalFlip, FlipsAtItsProbability) {
  EXPECT_NEAR(ChangeRate(HorizontalFlip(0.5)), 0.5, 0.03);
  EXPECT_NEAR(ChangeRate(HorizontalFlip(0.1)), 0.1, 0.02);
  EXPECT_EQ(ChangeRate(HorizontalFlip(0)), 0);
  EXPECT_EQ(ChangeRate(HorizontalFlip(1)), 1);
}

TEST(Grayscale, ConvertsAtItsProbability) {
  EXPECT_NEAR(ChangeRate(Grayscale(3, 0.2)), 0.2, 0.03);
  EXPECT_EQ(ChangeRate(Grayscale(3, 1)), 1);
}

TEST(ColorJitter, BrightnessIsUniformInItsRange) {
  Image in;
  in.Reshape({1, 1, 3});
  std::fill(in.bytes.begin(), in.bytes.end(), uint8_t{100});
  const ColorJitter jitter({.brightness = api::Range{0.5, 1.5}});
  Image out;
  std::array<int, 4> quarters{};
  for (int id = 0; id < kDraws; ++id) {
    job::RandomStream random(5, 0, id, 0);
    ASSERT_TRUE(jitter.Apply(in.view(), &out, random).ok());
    ASSERT_GE(out.bytes[0], 50);
    ASSERT_LE(out.bytes[0], 150);
    ++quarters[size_t(std::min((out.bytes[0] - 50) / 25, 3))];
  }
  for (const int count : quarters) EXPECT_NEAR(count, kDraws / 4.0, kDraws / 20.0);
}

TEST(ColorJitter, UsesEveryOrderOfItsAdjustments) {
  // With fixed factors only the order is random. A picture on which the 24 orders give many
  // results: exactly those that the kernels give when called in that order.
  const Image in = NoiseImage({6, 6, 3}, 9);
  using Adjust = void (*)(double, Image*);
  const std::array<std::pair<Adjust, double>, 4> steps = {
      {{AdjustBrightness, 1.6}, {AdjustContrast, 0.6}, {AdjustSaturation, 1.9}, {AdjustHue, 0.2}}};
  const auto key = [](const Image& image) {
    return std::string(image.bytes.begin(), image.bytes.end());
  };
  std::map<std::string, int> expected;
  std::array<size_t, 4> order = {0, 1, 2, 3};
  do {
    Image image = in;
    for (const size_t i : order) steps[i].first(steps[i].second, &image);
    expected[key(image)] = 0;
  } while (std::next_permutation(order.begin(), order.end()));

  const ColorJitter jitter({.brightness = api::Range{1.6, 1.6},
                            .contrast = api::Range{0.6, 0.6},
                            .saturation = api::Range{1.9, 1.9},
                            .hue = api::Range{0.2, 0.2}});
  Image out;
  for (int id = 0; id < kDraws; ++id) {
    job::RandomStream random(5, 0, id, 0);
    ASSERT_TRUE(jitter.Apply(in.view(), &out, random).ok());
    ASSERT_EQ(expected.count(key(out)), 1u) << id;
    ++expected[key(out)];
  }
  EXPECT_EQ(expected.size(), 24u);
  for (const auto& [bytes, count] : expected) EXPECT_GT(count, kDraws / 24 / 2);
}

TEST(GaussianBlurOperator, SigmaStaysInItsRange) {
  // One white pixel: the centre of the result falls as sigma grows.
  Image in;
  in.Reshape({11, 11, 1});
  std::fill(in.bytes.begin(), in.bytes.end(), uint8_t{0});
  in.row(5)[5] = 255;
  Image sharpest, softest, out;
  Blur(in.view(), 5, 0.5, &sharpest);
  Blur(in.view(), 5, 1.5, &softest);
  const GaussianBlur blur(5, {0.5, 1.5});
  int above_middle = 0;
  Image middle;
  Blur(in.view(), 5, 1.0, &middle);
  for (int id = 0; id < kDraws; ++id) {
    job::RandomStream random(5, 0, id, 0);
    ASSERT_TRUE(blur.Apply(in.view(), &out, random).ok());
    ASSERT_LE(out.row(5)[5], sharpest.row(5)[5]);
    ASSERT_GE(out.row(5)[5], softest.row(5)[5]);
    above_middle += out.row(5)[5] > middle.row(5)[5];
  }
  EXPECT_NEAR(above_middle, kDraws / 2.0, kDraws / 20.0);
}

}  // namespace
}  // namespace hetero::pipeline
