#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

// What spec.pipeline of the manifest consists of, and the shapes that it speaks of; part of
// hetero_training_job.h.
namespace hetero::api {

struct ImageShape {
  int32_t height = 0;
  int32_t width = 0;
  int32_t channels = 0;
  bool operator==(const ImageShape&) const = default;
};

struct Size {
  int32_t height = 0;
  int32_t width = 0;
  bool operator==(const Size&) const = default;
};

// A closed interval, {min, max} in the manifest.
struct Range {
  double min = 0;
  double max = 0;
  bool operator==(const Range&) const = default;
};

enum class Placement { kAuto, kCpuWorker, kTrainer };

// In the order of their rows (operators.cpp).
enum class OperatorKind {
  kDecode,
  kResize,
  kCenterCrop,
  kRandomResizedCrop,
  kHorizontalFlip,
  kVerticalFlip,
  kRotate,
  kColorJitter,
  kGrayscale,
  kGaussianBlur,
  kRandomErasing,
  kRandAugment,
  kNormalize,
  kCast,
  kDelay,
  kPlugin,
  kPython
};

enum class ElementType { kUint8, kFloat32 };
enum class Interpolation { kNearest, kBilinear };

// What a Python operator makes of each sample.
struct OperatorImage {
  std::vector<int32_t> shape;       // [height, width, channels]
  std::optional<ElementType> type;  // Uint8
  bool operator==(const OperatorImage&) const = default;
};
struct OperatorOutputs {
  OperatorImage image;
  bool operator==(const OperatorOutputs&) const = default;
};

// One entry of spec.pipeline. One flat schema: a parameter name has one type for every operator;
// operators.h says which operators take it and what its absence means.
struct OperatorSpec {
  OperatorKind op = OperatorKind::kDecode;
  int32_t repeat = 1;
  Placement placement = Placement::kAuto;
  std::vector<std::string> views;  // that it is for, by name (View); empty: all

  std::optional<Size> size;
  std::optional<int32_t> shorter_side;  // keeps the aspect ratio; excludes size
  std::optional<Interpolation> interpolation;
  std::optional<Range> scale;  // share of the area
  std::optional<Range> ratio;  // RandomResizedCrop: width / height; RandomErasing: height / width
  std::optional<double> probability;
  std::optional<int32_t> kernel_size;  // odd
  std::optional<Range> sigma;          // pixels
  std::optional<Range> brightness;     // factors, 1 leaves as is
  std::optional<Range> contrast;
  std::optional<Range> saturation;
  std::optional<Range> hue;  // turns
  std::optional<Range> degrees;
  std::optional<int32_t> output_channels;  // 1 or 3
  std::vector<double> mean;                // per channel, of values in 0..1
  std::vector<double> std;                 // per channel, > 0
  std::optional<ElementType> type;
  std::optional<double> value;  // 0..255
  std::optional<int32_t> operations;
  std::optional<int32_t> magnitude;
  std::optional<int32_t> milliseconds;
  std::string path;  // absolute: the plugin's shared library, or the folder of a Python module
  std::string name;  // which operator of the plugin
  std::map<std::string, std::string> parameters;
  std::string module;  // of Python
  std::string function;
  std::optional<OperatorOutputs> outputs;
  std::vector<std::string> also;  // fields that move as the picture does
};

}  // namespace hetero::api
