#include "runtime/pipeline/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>

#include "api/operators.h"
#include "runtime/pipeline/crop.h"
#include "runtime/pipeline/decode.h"
#include "runtime/pipeline/flip.h"
#include "runtime/pipeline/gaussian_blur.h"
#include "runtime/pipeline/rand_augment.h"
#include "runtime/pipeline/resize.h"
#include "tests/unit/runtime/pipeline/fixtures.h"

namespace hetero::pipeline {
namespace {

using api::ImageShape;
using api::OperatorKind;
using job::Split;
using ::testing::HasSubstr;
using Specs = std::vector<api::OperatorSpec>;

std::unique_ptr<Pipeline> MustCreate(const Specs& specs, const ImageShape& input,
                                     Split split = Split::kTrain) {
  auto pipeline = Pipeline::Create(specs, input, split);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return pipeline.ok() ? *std::move(pipeline) : nullptr;
}

std::vector<uint8_t> MustRun(const Pipeline& pipeline, const source::RawSample& sample,
                             const SampleKey& key = {}) {
  std::vector<uint8_t> out(size_t(pipeline.output_bytes()));
  const absl::Status status = pipeline.Run(sample, key, out);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

void ExpectRefused(const Specs& specs, const ImageShape& input, const std::string& part) {
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    const auto pipeline = Pipeline::Create(specs, input, split);
    ASSERT_FALSE(pipeline.ok()) << part;
    EXPECT_EQ(pipeline.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(pipeline.status().message()), HasSubstr(part));
  }
}

void ExpectDataLoss(const Pipeline& pipeline, const source::RawSample& sample,
                    const std::string& part) {
  std::vector<uint8_t> out(size_t(pipeline.output_bytes()));
  const absl::Status status = pipeline.Run(sample, {}, out);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

source::RawSample Encoded(source::Encoding encoding, const std::string& file) {
  source::RawSample sample;
  sample.encoding = encoding;
  sample.bytes = ReadGolden(file);
  return sample;
}

api::OperatorSpec Blurred(int32_t kernel_size) {
  api::OperatorSpec spec = Op(OperatorKind::kGaussianBlur);
  spec.kernel_size = kernel_size;
  return spec;
}

Specs TypicalTraining() {
  api::OperatorSpec jitter = Op(OperatorKind::kColorJitter);
  jitter.brightness = jitter.contrast = jitter.saturation = api::Range{0.6, 1.4};
  jitter.hue = api::Range{-0.1, 0.1};
  return {Op(OperatorKind::kDecode),
          SizedOp(OperatorKind::kRandomResizedCrop, 24, 24),
          Op(OperatorKind::kHorizontalFlip),
          jitter,
          Blurred(5),
          Op(OperatorKind::kNormalize)};
}

TEST(Pipeline, SameKeySameBytesOnAnyThread) {
  const auto pipeline = MustCreate(TypicalTraining(), {0, 0, 3});
  const source::RawSample sample = Encoded(source::Encoding::kJpeg, "420.jpg");
  const SampleKey key{42, 3, 1001};
  const std::vector<uint8_t> first = MustRun(*pipeline, sample, key);
  MustRun(*pipeline, RawSampleOf(NoiseImage({90, 80, 3})), key);
  EXPECT_EQ(MustRun(*pipeline, sample, key), first);
  std::vector<uint8_t> elsewhere;
  std::jthread([&] {
    elsewhere = MustRun(*MustCreate(TypicalTraining(), {0, 0, 3}), sample, key);
  }).join();
  EXPECT_EQ(elsewhere, first);
  EXPECT_NE(MustRun(*pipeline, sample, {43, 3, 1001}), first);
  EXPECT_NE(MustRun(*pipeline, sample, {42, 4, 1001}), first);
  EXPECT_NE(MustRun(*pipeline, sample, {42, 3, 1002}), first);
}

TEST(Pipeline, RepeatsDrawTheirOwnNumbers) {
  api::OperatorSpec twice = Op(OperatorKind::kHorizontalFlip);
  twice.repeat = 2;
  const auto pipeline = MustCreate({twice}, {2, 3, 1});
  const Image image = NoiseImage({2, 3, 1});
  int flipped = 0;
  for (int64_t id = 0; id < 400; ++id) {
    flipped += MustRun(*pipeline, RawSampleOf(image), {1, 0, id}) != image.bytes;
  }
  // Equal numbers would always flip back.
  EXPECT_GT(flipped, 140);
  EXPECT_LT(flipped, 260);

  api::OperatorSpec blurred = Blurred(3);
  blurred.repeat = 3;
  blurred.sigma = api::Range{1, 1};
  const Image large = NoiseImage({9, 9, 3});
  Image once, again, thrice;
  Blur(large.view(), 3, 1, &once);
  Blur(once.view(), 3, 1, &again);
  Blur(again.view(), 3, 1, &thrice);
  EXPECT_EQ(MustRun(*MustCreate({blurred}, {9, 9, 3}), RawSampleOf(large)), thrice.bytes);
}

TEST(Pipeline, DecodesWhetherOrNotItIsAsked) {
  const auto asked = MustCreate({Op(OperatorKind::kDecode)}, {37, 53, 3});
  const auto implied = MustCreate({}, {37, 53, 3});
  Image expected;
  ASSERT_TRUE(DecodePng(ReadGolden("rgb.png"), &expected).ok());
  for (const Pipeline* pipeline : {asked.get(), implied.get()}) {
    EXPECT_EQ(MustRun(*pipeline, Encoded(source::Encoding::kPng, "rgb.png")), expected.bytes);
    EXPECT_EQ(MustRun(*pipeline, RawSampleOf(expected)), expected.bytes);
  }
}

TEST(Pipeline, ValidationIsDeterministicAndTheMiddleOfThePicture) {
  const auto pipeline = MustCreate(
      {SizedOp(OperatorKind::kRandomResizedCrop, 28, 28), Op(OperatorKind::kHorizontalFlip)},
      {60, 80, 3}, Split::kValidation);
  const Image image = NoiseImage({60, 80, 3});
  // 28 * 256 / 224 = 32, so 60x80 becomes 32x42.
  Image resized, expected;
  ResizeBox(image.view(), {0, 0, 60, 80}, {32, 42}, api::Interpolation::kBilinear, &resized);
  CropCenter(resized.view(), {28, 28}, &expected);
  EXPECT_EQ(pipeline->output(), (ImageShape{28, 28, 3}));
  for (int64_t id = 0; id < 8; ++id) {
    EXPECT_EQ(MustRun(*pipeline, RawSampleOf(image), {1, 0, id}), expected.bytes);
  }
}

TEST(Pipeline, ValidationSkipsColourAndFixesBlur) {
  Specs specs = TypicalTraining();
  specs[1] = SizedOp(OperatorKind::kResize, 24, 24);
  api::OperatorSpec grey = Op(OperatorKind::kGrayscale);
  grey.probability = 0.9;
  specs.insert(specs.begin() + 2, grey);
  const auto pipeline = MustCreate(specs, {24, 24, 3}, Split::kValidation);
  const Image image = NoiseImage({24, 24, 3});
  Image expected;
  Blur(image.view(), 5, 1.05, &expected);
  EXPECT_EQ(MustRun(*pipeline, RawSampleOf(image), {5, 6, 7}), expected.bytes);
}

TEST(Pipeline, ReportsTheOutputShape) {
  EXPECT_EQ(MustCreate({Op(OperatorKind::kGrayscale)}, {8, 9, 3})->output(), (ImageShape{8, 9, 1}));
  api::OperatorSpec shorter = Op(OperatorKind::kResize);
  shorter.shorter_side = 20;
  EXPECT_EQ(MustCreate({shorter}, {50, 40, 3})->output(), (ImageShape{25, 20, 3}));
  const auto cropped = MustCreate({shorter, SizedOp(OperatorKind::kCenterCrop, 16, 18)}, {});
  EXPECT_EQ(cropped->output(), (ImageShape{16, 18, 3}));
  EXPECT_EQ(cropped->output_bytes(), 16 * 18 * 3);
}

TEST(Pipeline, NamesTheOperatorThatCannotBe) {
  api::OperatorSpec shorter = Op(OperatorKind::kResize);
  shorter.shorter_side = 20;
  ExpectRefused({shorter}, {0, 0, 3},
                "spec.pipeline[0] (Resize) leaves pictures whose size varies");
  ExpectRefused({}, {}, "spec.pipeline leaves");
  ExpectRefused({Op(OperatorKind::kResize)}, {8, 8, 3},
                "spec.pipeline[0] (Resize) Resize needs exactly one");
  ExpectRefused({Op(OperatorKind::kHorizontalFlip), Op(OperatorKind::kDecode)}, {8, 8, 3},
                "spec.pipeline[1] (Decode) must come first");
  ExpectRefused({Op(OperatorKind::kHorizontalFlip), Blurred(17)}, {8, 30, 3},
                "spec.pipeline[1] (GaussianBlur) kernelSize 17");
  ExpectRefused({Blurred(4)}, {8, 8, 3}, "must be odd");
  ExpectRefused({Op(OperatorKind::kRotate)}, {8, 8, 3}, "(Rotate) degrees: is required");
  api::OperatorSpec grey = Op(OperatorKind::kGrayscale);
  grey.probability = 0.5;
  grey.output_channels = 1;
  ExpectRefused({grey}, {8, 8, 3}, "outputChannels: must be 3 when");
  api::OperatorSpec flip = Op(OperatorKind::kHorizontalFlip);
  flip.probability = 1.5;
  ExpectRefused({flip}, {8, 8, 3}, "probability: must be at least 0 and at most 1, got 1.5");
  flip.probability.reset();
  flip.repeat = 0;
  ExpectRefused({flip}, {8, 8, 3}, "repeat: must be at least 1");
}

// Some kernels take less than the manifest allows.
TEST(Pipeline, KernelsHaveLimitsOfTheirOwn) {
  api::OperatorSpec blur = Blurred(3);
  blur.sigma = api::Range{0.0005, 2};
  ExpectRefused({blur}, {8, 8, 3},
                "(GaussianBlur) sigma {min: 0.0005, max: 2} must lie in [0.001, 1000]");
  api::OperatorSpec jitter = Op(OperatorKind::kColorJitter);
  jitter.saturation = api::Range{0.5, 61};
  ExpectRefused({jitter}, {8, 8, 3},
                "(ColorJitter) saturation {min: 0.5, max: 61} must lie in [0, 60]");
  api::OperatorSpec crop = SizedOp(OperatorKind::kRandomResizedCrop, 8, 8);
  crop.scale = api::Range{1e-10, 1};
  ExpectRefused({crop}, {8, 8, 3}, "scale {min: 1e-10, max: 1} must lie in [1e-09, 1]");
  api::OperatorSpec erase = Op(OperatorKind::kRandomErasing);
  erase.ratio = api::Range{0.0001, 1};
  ExpectRefused({erase}, {8, 8, 3}, "ratio {min: 0.0001, max: 1} must lie in [0.001, 1000]");
  ExpectRefused({SizedOp(OperatorKind::kCenterCrop, 16384, 16384)}, {8, 8, 3},
                "size 16384x16384 must be at least 1x1 and at most 178956970 pixels");
  EXPECT_EQ(api::LimitsOfParameter("magnitude").max, kMaxMagnitude);
}

TEST(Pipeline, TakesGreyPictures) {
  const auto pipeline = MustCreate(TypicalTraining(), {30, 30, 1});
  EXPECT_EQ(pipeline->output(), (ImageShape{24, 24, 1}));
  MustRun(*pipeline, RawSampleOf(NoiseImage({30, 30, 1})), {1, 2, 3});
}

TEST(Pipeline, BadSamplesAreDataLoss) {
  const auto fixed = MustCreate({SizedOp(OperatorKind::kResize, 8, 8)}, {20, 20, 3});
  ExpectDataLoss(*fixed, RawSampleOf(NoiseImage({20, 21, 3})), "20x21x3");
  ExpectDataLoss(*fixed, Encoded(source::Encoding::kPng, "rgb.png"), "37x53x3");
  source::RawSample short_bytes = RawSampleOf(NoiseImage({20, 20, 3}));
  short_bytes.bytes.pop_back();
  ExpectDataLoss(*fixed, short_bytes, "1199 bytes");
  source::RawSample truncated = Encoded(source::Encoding::kJpeg, "444.jpg");
  truncated.bytes.resize(truncated.bytes.size() / 2);
  ExpectDataLoss(*fixed, truncated, "JPEG");
  ExpectDataLoss(*fixed, Encoded(source::Encoding::kPng, "cases.json"), "PNG");

  const auto any = MustCreate({SizedOp(OperatorKind::kResize, 8, 8)}, {0, 0, 3});
  ExpectDataLoss(*any, RawSampleOf(NoiseImage({20, 20, 1})), "3 channels");
  const auto blurred = MustCreate({Blurred(11), SizedOp(OperatorKind::kResize, 8, 8)}, {0, 0, 3});
  ExpectDataLoss(*blurred, RawSampleOf(NoiseImage({20, 5, 3})), "GaussianBlur");
}

TEST(Pipeline, ABadSampleLeavesNoTraceInTheNext) {
  const auto pipeline = MustCreate({SizedOp(OperatorKind::kResize, 8, 8)}, {37, 53, 3});
  const source::RawSample good = Encoded(source::Encoding::kJpeg, "444.jpg");
  const std::vector<uint8_t> before = MustRun(*pipeline, good);
  source::RawSample bad = good;
  bad.bytes.resize(bad.bytes.size() / 2);
  ExpectDataLoss(*pipeline, bad, "JPEG");
  EXPECT_EQ(MustRun(*pipeline, good), before);
}

class SleepRecorder final : public base::Clock {
 public:
  base::Instant Now() const override { return {}; }
  base::WallTime WallNow() const override { return {}; }
  bool SleepFor(base::Duration duration, std::stop_token) override {
    slept += duration;
    return true;
  }
  base::Duration slept{};
};

// Operators that may leave a picture where it is, or write it where it is wanted, yield what they
// write into an image of their own; whatever comes before or after them.
TEST(Pipeline, SkippedCopiesChangeNothing) {
  const api::ImageShape shape = {24, 17, 3};
  const Image image = NoiseImage(shape);
  const std::vector<std::shared_ptr<Operator>> operators = {
      std::make_shared<GaussianBlur>(11, api::Range{0.1, 0.1}),  // has no effect
      std::make_shared<GaussianBlur>(11, api::Range{0.1, 2.0}),
      std::make_shared<HorizontalFlip>(0.5), std::make_shared<VerticalFlip>(0.5)};
  for (size_t i = 0; i < operators.size(); ++i) {
    for (int64_t id = 0; id < 8; ++id) {
      const auto random = [id] { return job::RandomStream(1, 0, id, 0); };
      job::RandomStream first = random(), second = random(), third = random();
      Image want, scratch;
      ImageView got;
      ASSERT_TRUE(operators[i]->Apply(image.view(), &want, first).ok());
      ASSERT_TRUE(operators[i]->Transform(image.view(), &scratch, second, &got).ok());
      EXPECT_EQ(got.shape, shape);
      EXPECT_TRUE(std::equal(want.bytes.begin(), want.bytes.end(), got.data)) << i << " " << id;
      if (i == 0) {
        EXPECT_EQ(got.data, image.bytes.data());
      }
      if (!operators[i]->writes_anywhere()) continue;
      std::vector<uint8_t> bytes(want.bytes.size() + 64, 0xab);
      ASSERT_TRUE(operators[i]->ApplyTo(image.view(), bytes.data(), third).ok());
      EXPECT_TRUE(std::equal(want.bytes.begin(), want.bytes.end(), bytes.begin())) << i;
      // Another sample's bytes follow.
      EXPECT_TRUE(std::all_of(bytes.end() - 64, bytes.end(), [](uint8_t b) { return b == 0xab; }));
    }
  }
}

TEST(Pipeline, DelaySleepsOnTheGivenClock) {
  SleepRecorder clock;
  api::OperatorSpec delay = Op(OperatorKind::kDelay);
  delay.milliseconds = 30;
  delay.repeat = 2;
  auto pipeline = Pipeline::Create({delay}, {4, 4, 3}, Split::kTrain, clock);
  ASSERT_TRUE(pipeline.ok());
  const Image image = NoiseImage({4, 4, 3});
  EXPECT_EQ(MustRun(**pipeline, RawSampleOf(image)), image.bytes);
  EXPECT_EQ(clock.slept, std::chrono::milliseconds(60));
}

}  // namespace
}  // namespace hetero::pipeline
