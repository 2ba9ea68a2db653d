#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/decode.h"
#include "runtime/pipeline/crop.h"
#include "runtime/pipeline/decode.h"
#include "runtime/pipeline/mask_pipeline.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/pipeline/fixtures.h"

namespace hetero::pipeline {
namespace {

using api::OperatorKind;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int32_t kHeight = 37, kWidth = 53;
using Specs = std::vector<api::OperatorSpec>;

std::vector<uint8_t> GoldenMask(const std::string& file) {
  std::ifstream in(testing::SourceDir() + "/tests/golden/masks/" + file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Image Decoded(const std::string& file) {
  Image mask;
  const absl::Status status = DecodeMask(GoldenMask(file), {kHeight, kWidth}, &mask);
  EXPECT_TRUE(status.ok()) << status;
  return mask;
}

// Of a picture whose pixels say where they are: column, row, and 1 in the third channel.
source::RawSample Compass(const std::string& mask) {
  Image image;
  image.Reshape({kHeight, kWidth, 3});
  for (int32_t y = 0; y < kHeight; ++y) {
    for (int32_t x = 0; x < kWidth; ++x) {
      uint8_t* pixel = image.row(y) + 3 * x;
      pixel[0] = uint8_t(x);
      pixel[1] = uint8_t(y);
      pixel[2] = 1;
    }
  }
  source::RawSample sample = RawSampleOf(image);
  sample.mask = GoldenMask(mask);
  return sample;
}

api::OperatorSpec Moving(api::OperatorSpec spec) {
  spec.also = {"mask"};
  return spec;
}

std::unique_ptr<MaskPipeline> Masks(const Specs& operators, int32_t fill = 0,
                                    job::Split split = job::Split::kTrain,
                                    const api::ImageShape& input = {kHeight, kWidth, 3}) {
  auto made = MaskPipeline::Create(operators, input, split, "mask", fill);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : nullptr;
}

std::vector<uint8_t> Moved(const MaskPipeline& masks, const source::RawSample& sample,
                           const SampleKey& key = {}) {
  std::vector<uint8_t> out(static_cast<size_t>(masks.output_bytes()), 99);
  const absl::Status status = masks.Run(sample, key, out);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

std::vector<json> Cases() {
  const std::vector<uint8_t> text = GoldenMask("cases.json");
  const json index = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  return index.is_object() ? index.at("cases").get<std::vector<json>>() : std::vector<json>();
}

class GoldenMasks : public ::testing::TestWithParam<json> {};

// Against what torchvision's joint transforms made (tests/golden/make_mask_vectors.py).
TEST_P(GoldenMasks, AreThoseOfTorchvision) {
  const json& test_case = GetParam();
  SCOPED_TRACE(test_case.dump());
  const json& output = test_case.at("output");
  const api::Size size = {output.at("height"), output.at("width")};
  const std::vector<uint8_t> wanted = GoldenMask(output.at("file"));
  if (test_case.contains("box")) {
    const json& box = test_case.at("box");
    Image out;
    ResizeBox(Decoded(test_case.at("mask")).view(),
              {box.at("top"), box.at("left"), box.at("height"), box.at("width")}, size,
              api::Interpolation::kNearest, &out);
    EXPECT_EQ(out.bytes, wanted);
    return;
  }
  Specs operators;
  for (const json& entry : test_case.at("operators")) {
    api::Findings findings;
    api::DecodeOperator(entry, operators.emplace_back(), findings);
    ASSERT_TRUE(findings.errors().empty());
  }
  const auto masks = Masks(operators, test_case.at("fill"));
  EXPECT_EQ(masks->output(), size);
  EXPECT_EQ(Moved(*masks, Compass(test_case.at("mask"))), wanted);
}

INSTANTIATE_TEST_SUITE_P(Torchvision, GoldenMasks, ::testing::ValuesIn(Cases()));

TEST(Masks, GoWhereThePixelsOfThePictureGo) {
  api::OperatorSpec crop = Moving(SizedOp(OperatorKind::kRandomResizedCrop, 30, 41));
  crop.interpolation = api::Interpolation::kNearest;
  api::OperatorSpec rotate = Moving(Op(OperatorKind::kRotate));
  rotate.degrees = api::Range{-180, 180};
  api::OperatorSpec flips = Moving(Op(OperatorKind::kHorizontalFlip));
  flips.repeat = 3;
  api::OperatorSpec resize = Moving(SizedOp(OperatorKind::kResize, 51, 22));
  resize.interpolation = api::Interpolation::kNearest;
  const Specs operators = {Op(OperatorKind::kDecode),
                           crop,
                           flips,
                           rotate,
                           Moving(Op(OperatorKind::kVerticalFlip)),
                           Moving(SizedOp(OperatorKind::kCenterCrop, 40, 33)),
                           resize,
                           Op(OperatorKind::kNormalize)};
  const auto picture = *Pipeline::Create(operators, {kHeight, kWidth, 3}, job::Split::kTrain);
  for (const int32_t fill : {0, 255, 3}) {
    const auto masks = Masks(operators, fill);
    const source::RawSample sample = Compass("grey.png");
    const Image mask = Decoded("grey.png");
    int beyond = 0;
    for (int64_t id = 0; id < 60; ++id) {
      const SampleKey key{7, 2, id};
      std::vector<uint8_t> pixels(static_cast<size_t>(picture->output_bytes()));
      ASSERT_TRUE(picture->Run(sample, key, pixels).ok());
      std::vector<uint8_t> wanted;
      for (size_t i = 0; i < pixels.size(); i += 3) {
        const bool inside = pixels[i + 2] == 1;
        beyond += !inside;
        wanted.push_back(inside ? mask.row(pixels[i + 1])[pixels[i]] : uint8_t(fill));
      }
      ASSERT_EQ(Moved(*masks, sample, key), wanted) << "sample " << id << ", fill " << fill;
    }
    EXPECT_GT(beyond, 1000);
  }
}

// A JPEG is decoded where the crop lies alone, and the mask is cropped there all the same.
TEST(Masks, AreCroppedByTheRegionThatIsDecoded) {
  const Specs operators = {Op(OperatorKind::kDecode),
                           Moving(SizedOp(OperatorKind::kRandomResizedCrop, 16, 12))};
  const auto masks = Masks(operators, 0, job::Split::kTrain, {0, 0, 3});
  source::RawSample sample;
  sample.encoding = source::Encoding::kJpeg;
  sample.bytes = ReadGolden("420.jpg");
  sample.mask = GoldenMask("voc.png");
  const Image mask = Decoded("voc.png");
  for (int64_t id = 0; id < 40; ++id) {
    job::RandomStream random(5, 1, id, /*position=*/1);
    const Box box = DrawCrop({kHeight, kWidth}, {0.08, 1.0}, {3.0 / 4, 4.0 / 3}, random);
    std::vector<uint8_t> wanted;
    for (int32_t y = 0; y < 16; ++y) {
      for (int32_t x = 0; x < 12; ++x) {
        const auto row = int32_t(float(y) * (float(box.height) / 16));
        const auto column = int32_t(float(x) * (float(box.width) / 12));
        wanted.push_back(mask.row(box.top + row)[box.left + column]);
      }
    }
    ASSERT_EQ(Moved(*masks, sample, {5, 1, id}), wanted) << id;
  }
}

TEST(Masks, InterpolationIsThePicturesAlone) {
  api::OperatorSpec smooth = Moving(SizedOp(OperatorKind::kRandomResizedCrop, 20, 20));
  api::OperatorSpec rough = smooth;
  rough.interpolation = api::Interpolation::kNearest;
  EXPECT_EQ(Moved(*Masks({smooth}), Compass("voc.png"), {1, 2, 3}),
            Moved(*Masks({rough}), Compass("voc.png"), {1, 2, 3}));
}

TEST(Masks, OfValidationAreTheMiddleOfTheResizedOne) {
  const Specs operators = {Moving(SizedOp(OperatorKind::kRandomResizedCrop, 28, 28)),
                           Moving(Op(OperatorKind::kHorizontalFlip))};
  const auto masks = Masks(operators, 0, job::Split::kValidation);
  Image resized, wanted;
  ResizeBox(Decoded("grey.png").view(), {0, 0, kHeight, kWidth}, {32, 45},
            api::Interpolation::kNearest, &resized);
  CropCenter(resized.view(), {28, 28}, &wanted);
  EXPECT_EQ(Moved(*masks, Compass("grey.png"), {1, 2, 3}), wanted.bytes);
}

std::string Refused(const std::vector<uint8_t>& mask) {
  source::RawSample sample = Compass("grey.png");
  sample.mask = mask;
  std::vector<uint8_t> out(size_t{kHeight} * kWidth);
  const absl::Status status = Masks({})->Run(sample, {}, out);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  return std::string(status.message());
}

TEST(Masks, ThatAreNoneAreBadSamples) {
  EXPECT_THAT(Refused({}), HasSubstr("mask: is empty"));
  EXPECT_THAT(Refused({'t', 'e', 'x', 't'}), HasSubstr("mask: PNG: "));
  EXPECT_THAT(Refused(ReadGolden("420.jpg")), HasSubstr("PNG: Not a PNG file"));
  EXPECT_THAT(Refused(ReadGolden("rgb.png")),
              AllOf(HasSubstr("has colours of 8 bits"), HasSubstr("one channel of 8 bits")));
  EXPECT_THAT(Refused(ReadGolden("rgb16.png")), HasSubstr("has colours of 16 bits"));
  EXPECT_THAT(Refused(ReadGolden("rgba.png")), HasSubstr("has colours of 8 bits"));
  EXPECT_THAT(Refused(ReadGolden("bilevel.png")), HasSubstr("has grey of 1 bits"));
  EXPECT_THAT(Refused(ReadGolden("grey.png")), HasSubstr("PNG: 28x28, and the picture is 37x53"));
  const std::vector<uint8_t> whole = GoldenMask("voc.png");
  for (size_t size = 0; size + 12 < whole.size(); ++size) {  // the last chunk says nothing
    Refused({whole.begin(), whole.begin() + std::ptrdiff_t(size)});
  }
}

TEST(Masks, OperatorsThatMoveThePictureAloneAreRefused) {
  const auto refused = [](const Specs& operators) {
    const auto made =
        MaskPipeline::Create(operators, {kHeight, kWidth, 3}, job::Split::kTrain, "seg", 0);
    EXPECT_TRUE(absl::IsInvalidArgument(made.status())) << made.status();
    return std::string(made.status().message());
  };
  EXPECT_THAT(refused({Op(OperatorKind::kDecode), Moving(Op(OperatorKind::kVerticalFlip))}),
              HasSubstr("spec.pipeline[1] (VerticalFlip) moves the picture's pixels and not those "
                        "of the field seg"));
  EXPECT_THAT(refused({Op(OperatorKind::kRandAugment)}), HasSubstr("(RandAugment) moves"));
}

}  // namespace
}  // namespace hetero::pipeline
