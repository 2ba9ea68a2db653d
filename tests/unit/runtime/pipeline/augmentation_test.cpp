#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "runtime/pipeline/erase.h"
#include "runtime/pipeline/exact_math.h"
#include "runtime/pipeline/flip.h"
#include "runtime/pipeline/rand_augment.h"
#include "runtime/pipeline/tone.h"
#include "runtime/pipeline/warp.h"
#include "tests/unit/runtime/pipeline/fixtures.h"

// What the augmentations draw, over samples 0, 1, 2, ..., and properties that no picture of the
// golden vectors shows.
namespace hetero::pipeline {
namespace {

constexpr int kDraws = 4000;

TEST(ExactSinCos, AgreesWithTheLibraryAndIsExactAtRightAngles) {
  for (double degrees = -720; degrees <= 720; degrees += 0.37) {
    const SinCos turn = ExactSinCos(degrees);
    EXPECT_NEAR(turn.sin, std::sin(degrees * M_PI / 180), 1e-14) << degrees;
    EXPECT_NEAR(turn.cos, std::cos(degrees * M_PI / 180), 1e-14) << degrees;
  }
  EXPECT_EQ(ExactSinCos(-90).sin, -1);
  EXPECT_EQ(ExactSinCos(180).cos, -1);
  EXPECT_EQ(ExactSinCos(270).cos, 0);
  EXPECT_EQ(ExactSinCos(360).sin, 0);
}

TEST(Warp, FourQuarterTurnsGiveThePictureBack) {
  for (const auto interpolation : {api::Interpolation::kNearest, api::Interpolation::kBilinear}) {
    for (const int32_t size : {8, 9}) {
      const Image in = NoiseImage({size, size, 3});
      Image turned = in, next;
      for (int i = 0; i < 4; ++i) {
        Warp(turned.view(), Rotation(90), interpolation, &next);
        std::swap(turned, next);
        EXPECT_EQ(turned.bytes == in.bytes, i == 3);
      }
    }
  }
}

TEST(Warp, TheLargestPictureDoesNotOverflow) {
  Image in;
  in.Reshape({2, 16384, 1});
  for (size_t i = 0; i < in.bytes.size(); ++i) in.bytes[i] = uint8_t(i * 7);
  Image out, back;
  Warp(in.view(), Rotation(180), api::Interpolation::kNearest, &out);
  Warp(out.view(), Rotation(-180), api::Interpolation::kBilinear, &back);
  EXPECT_TRUE(back.bytes == in.bytes);
  Image tall;
  tall.Reshape({16384, 2, 1});
  tall.bytes = in.bytes;
  Warp(tall.view(), Rotation(180), api::Interpolation::kBilinear, &out);
  Warp(out.view(), Rotation(180), api::Interpolation::kNearest, &back);
  EXPECT_TRUE(back.bytes == in.bytes);
}

TEST(Rotate, AnglesAreUniformInTheirRange) {
  Image in;
  in.Reshape({101, 101, 1});
  // A bright spot at the right edge: its height tells the angle.
  in.row(50)[95] = 255;
  const Rotate rotate({-30, 30}, api::Interpolation::kNearest);
  Image out;
  int up = 0, far = 0, seen = 0;
  for (int id = 0; id < 1000; ++id) {
    job::RandomStream random(2, 0, id, 1);
    ASSERT_TRUE(rotate.Apply(in.view(), &out, random).ok());
    for (int32_t y = 0; y < 101; ++y) {
      const uint8_t* row = out.row(y);
      if (std::find(row, row + 101, uint8_t{255}) == row + 101) continue;
      ++seen;
      up += y < 50;
      far += std::abs(y - 50) > 11;  // 45 pixels * sin(15 degrees)
      break;
    }
  }
  ASSERT_GT(seen, 600);  // nearest neighbour loses the spot at some angles
  EXPECT_NEAR(double(up) / seen, 0.5, 0.06);
  EXPECT_NEAR(double(far) / seen, 0.5, 0.08);
}

TEST(VerticalFlip, FlipsAtItsProbability) {
  const Image in = NoiseImage({4, 5, 3});
  Image out, twice;
  int flipped = 0;
  for (int id = 0; id < kDraws; ++id) {
    job::RandomStream random(3, 1, id, 2);
    ASSERT_TRUE(VerticalFlip(0.3).Apply(in.view(), &out, random).ok());
    flipped += out.bytes != in.bytes;
  }
  EXPECT_NEAR(double(flipped) / kDraws, 0.3, 0.03);
  FlipVertically(in.view(), &out);
  FlipVertically(out.view(), &twice);
  EXPECT_EQ(twice.bytes, in.bytes);
}

TEST(RandomErasing, BoxesFollowTorchvisionsDistribution) {
  const api::Range scale{0.02, 0.33}, ratio{0.3, 3.3};
  double area_sum = 0, log_ratio_sum = 0;
  std::set<int32_t> tops;
  for (int id = 0; id < kDraws; ++id) {
    job::RandomStream random(7, 0, id, 3);
    const auto box = DrawErased({224, 200}, scale, ratio, random);
    ASSERT_TRUE(box.has_value());
    ASSERT_GE(box->top, 0);
    ASSERT_GE(box->left, 0);
    ASSERT_LE(box->top + box->height, 224);
    ASSERT_LE(box->left + box->width, 200);
    const double area = double(box->height) * box->width / (224.0 * 200.0);
    ASSERT_GT(area, 0.019);
    ASSERT_LT(area, 0.34);
    area_sum += area;
    log_ratio_sum += std::log(double(box->height) / box->width);
    tops.insert(box->top);
  }
  EXPECT_NEAR(area_sum / kDraws, 0.17, 0.01);
  EXPECT_NEAR(log_ratio_sum / kDraws, 0, 0.06);
  EXPECT_GT(tops.size(), 150u);
}

TEST(RandomErasing, LeavesWhatItCannotEraseInPart) {
  job::RandomStream random(1, 0, 0, 0);
  // A box of the whole area is never smaller than the picture on both axes.
  EXPECT_FALSE(DrawErased({20, 20}, {1, 1}, {1, 1}, random).has_value());
  const Image in = NoiseImage({20, 20, 3});
  Image out;
  ASSERT_TRUE(RandomErasing(1, {1, 1}, {1, 1}, 0).Apply(in.view(), &out, random).ok());
  EXPECT_EQ(out.bytes, in.bytes);
}

TEST(RandomErasing, ErasesAtItsProbability) {
  Image in;
  in.Reshape({30, 30, 3});
  std::fill(in.bytes.begin(), in.bytes.end(), uint8_t{9});
  const RandomErasing erasing(0.25, {0.1, 0.2}, {1, 1}, 77);
  Image out;
  int erased = 0;
  for (int id = 0; id < kDraws; ++id) {
    job::RandomStream random(1, 2, id, 0);
    ASSERT_TRUE(erasing.Apply(in.view(), &out, random).ok());
    const auto filled = std::count(out.bytes.begin(), out.bytes.end(), uint8_t{77});
    erased += filled > 0;
    EXPECT_EQ(filled % 3, 0);
  }
  EXPECT_NEAR(double(erased) / kDraws, 0.25, 0.03);
}

TEST(RandAugment, DrawsEveryAugmentationAndDirectionEquallyOften) {
  const Image in = NoiseImage({24, 24, 3}, 5);
  std::map<std::vector<uint8_t>, std::set<std::string>> results;
  Image out;
  for (uint32_t i = 0; i < kAugmentations; ++i) {
    for (const bool negative : {false, true}) {
      Augment(in.view(), Augmentation(i), 12, negative, &out);
      results[out.bytes].insert(std::to_string(i));
    }
  }
  const RandAugment augment(1, 12);
  std::map<std::string, int> counts;
  for (int id = 0; id < 14 * 300; ++id) {
    job::RandomStream random(11, 0, id, 4);
    ASSERT_TRUE(augment.Apply(in.view(), &out, random).ok());
    const auto found = results.find(out.bytes);
    ASSERT_NE(found, results.end());
    ++counts[*found->second.begin()];
  }
  int total = 0;
  for (const auto& [name, count] : counts) {
    total += count;
    EXPECT_GT(count, 200) << name;
  }
  EXPECT_EQ(total, 14 * 300);
  EXPECT_GE(counts.size(), 12u);
}

TEST(RandAugment, DoesItsOperationsOneAfterTheOther) {
  const Image in = NoiseImage({24, 24, 3}, 6);
  for (int id = 0; id < 50; ++id) {
    job::RandomStream random(1, 0, id, 0), same(1, 0, id, 0);
    Image out, expected = in, next;
    ASSERT_TRUE(RandAugment(3, 9).Apply(in.view(), &out, random).ok());
    for (int i = 0; i < 3; ++i) {
      const auto augmentation = Augmentation(same.Below(kAugmentations));
      const bool negative = same.Below(2) == 0;
      Augment(expected.view(), augmentation, 9, negative, &next);
      std::swap(expected, next);
    }
    EXPECT_EQ(out.bytes, expected.bytes) << id;
  }
}

TEST(Augmentations, AreSkippedInValidationAndCheckedAllTheSame) {
  api::OperatorSpec rotate = Op(api::OperatorKind::kRotate);
  rotate.degrees = api::Range{10, 20};
  std::vector<api::OperatorSpec> specs = {Op(api::OperatorKind::kVerticalFlip), rotate,
                                          Op(api::OperatorKind::kRandomErasing),
                                          Op(api::OperatorKind::kRandAugment)};
  const auto pipeline = Pipeline::Create(specs, {20, 20, 3}, job::Split::kValidation);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const Image in = NoiseImage({20, 20, 3});
  std::vector<uint8_t> out(in.bytes.size());
  for (int64_t id = 0; id < 20; ++id) {
    ASSERT_TRUE((*pipeline)->Run(RawSampleOf(in), {1, 0, id}, out).ok());
    EXPECT_EQ(out, in.bytes);
  }
  specs[2].value = 256;
  EXPECT_FALSE(Pipeline::Create(specs, {20, 20, 3}, job::Split::kValidation).ok());
  specs[2].value = 0;
  specs[3].magnitude = 31;
  EXPECT_FALSE(Pipeline::Create(specs, {20, 20, 3}, job::Split::kValidation).ok());
}

TEST(Tone, OneColourStays) {
  for (const int value : {0, 7, 255}) {
    Image image;
    image.Reshape({5, 6, 3});
    std::fill(image.bytes.begin(), image.bytes.end(), uint8_t(value));
    const Image before = image;
    AutoContrast(&image);
    Equalize(&image);
    AdjustSharpness(1.9, &image);
    Posterize(8, &image);
    EXPECT_EQ(image.bytes, before.bytes) << value;
  }
}

}  // namespace
}  // namespace hetero::pipeline
