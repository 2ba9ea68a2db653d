#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/pipeline/crop.h"
#include "runtime/pipeline/decode.h"
#include "runtime/pipeline/flip.h"
#include "runtime/source/jpeg_writer.h"
#include "tests/unit/runtime/pipeline/fixtures.h"
#include "tests/unit/runtime/pipeline/instruction_sets.h"

namespace hetero::pipeline {
namespace {

void ExpectSameAsFullDecode(const std::vector<uint8_t>& bytes, const std::string& name, int boxes) {
  Image whole;
  ASSERT_TRUE(DecodeJpeg(bytes, &whole).ok()) << name;
  job::RandomStream random(3, 0, 0, 0);
  for (int i = 0; i < boxes; ++i) {
    Box box;
    const auto choose = [&](const api::ImageShape& shape) {
      EXPECT_EQ(shape, whole.shape);
      box.height = 1 + int32_t(random.Below(uint32_t(shape.height)));
      box.width = 1 + int32_t(random.Below(uint32_t(shape.width)));
      box.top = int32_t(random.Below(uint32_t(shape.height - box.height + 1)));
      box.left = int32_t(random.Below(uint32_t(shape.width - box.width + 1)));
      return box;
    };
    Image part;
    Box inside;
    ASSERT_TRUE(DecodeJpegBox(bytes, choose, &part, &inside).ok()) << name;
    ASSERT_EQ(inside.height, box.height);
    ASSERT_EQ(inside.width, box.width);
    ASSERT_TRUE(Cut(part, inside).bytes == Cut(whole, box).bytes)
        << name << " " << box.top << " " << box.left << " " << box.height << " " << box.width;
  }
}

TEST(DecodeJpegBox, GivesThePixelsOfTheFullDecode) {
  for (const char* file : {"444.jpg", "422.jpg", "420.jpg", "progressive.jpg", "grey.jpg"}) {
    ExpectSameAsFullDecode(ReadGolden(file), file, 400);
  }
  for (const api::Size size : {api::Size{375, 500}, {64, 64}, {17, 200}, {200, 33}, {1, 1}}) {
    const Image noise = NoiseImage({size.height, size.width, 3});
    std::vector<uint8_t> jpeg;
    ASSERT_TRUE(source::EncodeJpeg(noise.bytes, size, &jpeg).ok());
    ExpectSameAsFullDecode(jpeg, std::to_string(size.width), 60);
  }
}

TEST(DecodeJpegBox, ATruncatedFileIsBadWhateverTheBox) {
  std::vector<uint8_t> bytes = ReadGolden("420.jpg");
  bytes.resize(bytes.size() - bytes.size() / 4);
  Image part;
  Box inside;
  const auto top_left = [](const api::ImageShape&) { return Box{0, 0, 1, 1}; };
  EXPECT_EQ(DecodeJpegBox(bytes, top_left, &part, &inside).code(), absl::StatusCode::kDataLoss);
  bytes.resize(10);
  EXPECT_EQ(DecodeJpegBox(bytes, top_left, &part, &inside).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeJpegBox({}, top_left, &part, &inside).code(), absl::StatusCode::kDataLoss);
}

TEST(DecodeJpegBox, MayEndWithoutItsMarkerWhenAllPixelsAreThere) {
  std::vector<uint8_t> bytes = ReadGolden("420.jpg");
  bytes.insert(bytes.end(), 5000, 0);  // more than is searched for the end
  ExpectSameAsFullDecode(bytes, "appended", 20);
}

// A pipeline that crops what it decodes equals the operators one after the other.
TEST(DecodeJpegBox, ThePipelineProducesTheSameSamples) {
  const auto pipeline = Pipeline::Create({SizedOp(api::OperatorKind::kRandomResizedCrop, 24, 24),
                                          Op(api::OperatorKind::kHorizontalFlip)},
                                         {0, 0, 3}, job::Split::kTrain);
  ASSERT_TRUE(pipeline.ok());
  source::RawSample sample;
  sample.encoding = source::Encoding::kJpeg;
  sample.bytes = ReadGolden("420.jpg");
  Image whole;
  ASSERT_TRUE(DecodeJpeg(sample.bytes, &whole).ok());
  for (int64_t id = 0; id < 100; ++id) {
    std::vector<uint8_t> out(24 * 24 * 3);
    ASSERT_TRUE((*pipeline)->Run(sample, {1, 2, id}, out).ok());
    job::RandomStream crop(1, 2, id, 0), side(1, 2, id, 1);
    Image resized, flipped;
    const Box box =
        DrawCrop({whole.shape.height, whole.shape.width}, {0.08, 1}, {3.0 / 4, 4.0 / 3}, crop);
    ResizeBox(whole.view(), box, {24, 24}, api::Interpolation::kBilinear, &resized);
    ASSERT_TRUE(HorizontalFlip(0.5).Apply(resized.view(), &flipped, side).ok());
    ASSERT_EQ(out, flipped.bytes) << id;
  }
}

// Every operator at once: one digest for all instruction sets.
TEST(Pipeline, EveryInstructionSetProducesTheSameSamples) {
  api::OperatorSpec jitter = Op(api::OperatorKind::kColorJitter);
  jitter.brightness = jitter.contrast = jitter.saturation = api::Range{0.6, 1.4};
  jitter.hue = api::Range{-0.1, 0.1};
  api::OperatorSpec rotate = Op(api::OperatorKind::kRotate);
  rotate.degrees = api::Range{-20, 20};
  rotate.interpolation = api::Interpolation::kBilinear;
  api::OperatorSpec blur = Op(api::OperatorKind::kGaussianBlur);
  blur.kernel_size = 11;
  const auto pipeline = Pipeline::Create(
      {SizedOp(api::OperatorKind::kRandomResizedCrop, 48, 40), Op(api::OperatorKind::kVerticalFlip),
       jitter, rotate, blur, Op(api::OperatorKind::kRandAugment),
       Op(api::OperatorKind::kRandomErasing), SizedOp(api::OperatorKind::kResize, 33, 31),
       SizedOp(api::OperatorKind::kCenterCrop, 30, 30)},
      {0, 0, 3}, job::Split::kTrain);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  source::RawSample sample;
  sample.encoding = source::Encoding::kJpeg;
  sample.bytes = ReadGolden("422.jpg");
  std::vector<std::vector<uint8_t>> expected;
  for (const int64_t target : InstructionSet::All()) {
    const InstructionSet set(target);
    for (size_t id = 0; id < 40; ++id) {
      std::vector<uint8_t> out(30 * 30 * 3);
      ASSERT_TRUE((*pipeline)->Run(sample, {1, 2, int64_t(id)}, out).ok());
      if (expected.size() == id) expected.push_back(out);
      ASSERT_TRUE(out == expected[id]) << set.name() << " " << id;
    }
  }
}

}  // namespace
}  // namespace hetero::pipeline
