#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/pipeline/colour.h"
#include "runtime/pipeline/crop.h"
#include "runtime/pipeline/decode.h"
#include "runtime/pipeline/erase.h"
#include "runtime/pipeline/flip.h"
#include "runtime/pipeline/gaussian_blur.h"
#include "runtime/pipeline/grayscale.h"
#include "runtime/pipeline/rand_augment.h"
#include "runtime/pipeline/resize.h"
#include "runtime/pipeline/tone.h"
#include "runtime/pipeline/warp.h"
#include "tests/unit/runtime/pipeline/fixtures.h"

// Every kernel against what torchvision made of the same picture with the same parameters
// (tests/golden/make_pipeline_vectors.py).
namespace hetero::pipeline {
namespace {

using nlohmann::json;
using Kernel = std::function<void(const Image& in, const json& parameters, Image* out)>;

api::Size SizeOf(const json& p) { return {p.at("height"), p.at("width")}; }

Box Whole(const Image& image) { return {0, 0, image.shape.height, image.shape.width}; }

Kernel InPlace(void (*adjust)(double, Image*)) {
  return [adjust](const Image& in, const json& p, Image* out) {
    *out = in;
    adjust(p.at("factor"), out);
  };
}

const std::map<std::string, Kernel>& Kernels() {
  static const std::map<std::string, Kernel> kernels = {
      {"resize",
       [](const Image& in, const json& p, Image* out) {
         ResizeBox(in.view(), Whole(in), SizeOf(p), api::Interpolation::kBilinear, out);
       }},
      {"resize_nearest",
       [](const Image& in, const json& p, Image* out) {
         ResizeBox(in.view(), Whole(in), SizeOf(p), api::Interpolation::kNearest, out);
       }},
      {"resize_shorter_side",
       [](const Image& in, const json& p, Image* out) {
         job::RandomStream unused(0, 0, 0, 0);
         ASSERT_TRUE(Resize(int32_t(p.at("side")), api::Interpolation::kBilinear)
                         .Apply(in.view(), out, unused)
                         .ok());
       }},
      {"center_crop",
       [](const Image& in, const json& p, Image* out) { CropCenter(in.view(), SizeOf(p), out); }},
      {"resized_crop",
       [](const Image& in, const json& p, Image* out) {
         const Box box{p.at("top"), p.at("left"), p.at("box_height"), p.at("box_width")};
         ResizeBox(in.view(), box, SizeOf(p), api::Interpolation::kBilinear, out);
       }},
      {"horizontal_flip",
       [](const Image& in, const json&, Image* out) { FlipHorizontally(in.view(), out); }},
      {"grayscale", [](const Image& in, const json& p,
                       Image* out) { ToGrayscale(in.view(), p.at("channels"), out); }},
      {"brightness", InPlace(AdjustBrightness)},
      {"contrast", InPlace(AdjustContrast)},
      {"saturation", InPlace(AdjustSaturation)},
      {"hue", InPlace(AdjustHue)},
      {"gaussian_blur",
       [](const Image& in, const json& p, Image* out) {
         Blur(in.view(), p.at("kernel_size"), p.at("sigma"), out);
       }},
      {"vertical_flip",
       [](const Image& in, const json&, Image* out) { FlipVertically(in.view(), out); }},
      {"rotate_nearest",
       [](const Image& in, const json& p, Image* out) {
         Warp(in.view(), Rotation(p.at("degrees")), api::Interpolation::kNearest, out);
       }},
      {"rotate_bilinear",
       [](const Image& in, const json& p, Image* out) {
         Warp(in.view(), Rotation(p.at("degrees")), api::Interpolation::kBilinear, out);
       }},
      {"erase",
       [](const Image& in, const json& p, Image* out) {
         *out = in;
         Erase({p.at("top"), p.at("left"), p.at("box_height"), p.at("box_width")}, p.at("value"),
               out);
       }},
      {"augment",
       [](const Image& in, const json& p, Image* out) {
         Augment(in.view(), Augmentation(p.at("index").get<int>()), p.at("magnitude"),
                 p.at("negative"), out);
       }},
      {"invert",
       [](const Image& in, const json&, Image* out) {
         *out = in;
         Invert(out);
       }},
      {"posterize",
       [](const Image& in, const json& p, Image* out) {
         *out = in;
         Posterize(p.at("bits"), out);
       }},
      {"sharpness", InPlace(AdjustSharpness)},
      {"decode_jpeg",
       [](const Image& in, const json&, Image* out) {
         const absl::Status status = DecodeJpeg(in.bytes, out);
         ASSERT_TRUE(status.ok()) << status;
       }},
      {"decode_png",
       [](const Image& in, const json&, Image* out) {
         const absl::Status status = DecodePng(in.bytes, out);
         ASSERT_TRUE(status.ok()) << status;
       }},
  };
  return kernels;
}

Image ReadImage(const json& picture) {
  Image image;
  image.bytes = ReadGolden(picture.at("file"));
  if (picture.contains("height")) {
    image.shape = {picture.at("height"), picture.at("width"), picture.at("channels")};
  }
  return image;
}

std::vector<json> Cases() {
  const std::vector<uint8_t> text = ReadGolden("cases.json");
  const json index = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  return index.is_object() ? index.at("cases").get<std::vector<json>>() : std::vector<json>();
}

TEST(GoldenVectors, CoverEveryKernel) {
  std::map<std::string, int> seen;
  for (const json& c : Cases()) ++seen[c.at("kernel")];
  for (const auto& [name, kernel] : Kernels()) EXPECT_GT(seen[name], 0) << name;
}

class GoldenVector : public ::testing::TestWithParam<json> {};

TEST_P(GoldenVector, WithinTolerance) {
  const json& test_case = GetParam();
  SCOPED_TRACE(test_case.dump());
  const Image expected = ReadImage(test_case.at("output"));
  Image actual;
  Kernels().at(test_case.at("kernel"))(ReadImage(test_case.at("input")), test_case.at("parameters"),
                                       &actual);
  ASSERT_EQ(actual.shape, expected.shape);
  ASSERT_EQ(actual.bytes.size(), expected.bytes.size());
  int largest = 0;
  int differing = 0;
  for (size_t i = 0; i < actual.bytes.size(); ++i) {
    const int difference = std::abs(actual.bytes[i] - expected.bytes[i]);
    largest = std::max(largest, difference);
    differing += difference != 0;
  }
  RecordProperty("differing_bytes", differing);
  EXPECT_LE(largest, test_case.at("tolerance").get<int>());
  // Within one level, but not one level off everywhere.
  EXPECT_LE(differing, int(actual.bytes.size()) / 50 + 2);
}

std::string CaseName(const ::testing::TestParamInfo<json>& info) {
  return info.param.at("kernel").get<std::string>() + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Torchvision, GoldenVector, ::testing::ValuesIn(Cases()), CaseName);

}  // namespace
}  // namespace hetero::pipeline
