#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/api/test_manifest.h"

namespace hetero::api {
namespace {

using ::testing::HasSubstr;

std::string ErrorsOfPipeline(const std::string& operators) {
  return ErrorsOf({"pipeline=[" + operators + "]"});
}

OperatorSpec Parsed(const std::string& op) {
  const ManifestResult result = ParseManifest(kSmallest, {"pipeline=[" + op + "]"});
  EXPECT_EQ(FormatErrors(result.errors), "");
  return result.job.spec.pipeline.at(0);
}

TEST(PipelineRulesTest, AcceptedOperators) {
  for (const char* op :
       {"{op: Decode}", "{op: Resize, size: {height: 8, width: 8}}",
        "{op: Resize, shorterSide: 256, interpolation: Nearest, placement: Trainer}",
        "{op: CenterCrop, size: {height: 8, width: 8}}",
        "{op: RandomResizedCrop, size: {height: 8, width: 8}, scale: {min: 0.5, max: 1}}",
        "{op: HorizontalFlip}", "{op: VerticalFlip, probability: 1}",
        "{op: Rotate, degrees: {min: -10, max: 10}, interpolation: Bilinear}",
        "{op: ColorJitter, hue: {min: -0.1, max: 0.1}}",
        "{op: Grayscale, outputChannels: 3, probability: 0.2}", "{op: GaussianBlur, kernelSize: 3}",
        "{op: RandomErasing, value: 127}", "{op: RandAugment}", "{op: Normalize}",
        "{op: Normalize, mean: [0.5], std: [0.25]}", "{op: Cast, type: Float32}",
        "{op: Delay, milliseconds: 20}",
        "{op: Plugin, path: /opt/sharpen.so, name: sharpen, parameters: {amount: '2'}}",
        "{op: Python, module: my.augment, function: f, outputs: {image: {shape: [8, 8, 3]}}}"}) {
    EXPECT_EQ(ErrorsOfPipeline(op), "") << op;
  }
  EXPECT_EQ(ErrorsOf({"pipeline=[]"}), "");
  EXPECT_EQ(ErrorsOf({"pipeline="}), "");
}

TEST(PipelineRulesTest, RefusedOperators) {
  const std::pair<const char*, const char*> kCases[] = {
      {"{}", "pipeline[0].op: is required"},
      {"{op: Decode, size: {height: 8, width: 8}}", "pipeline[0].size: Decode takes no parameters"},
      {"{op: GaussianBlur}", "pipeline[0].kernelSize: is required for GaussianBlur"},
      {"{op: GaussianBlur, kernelSize: 4}", "pipeline[0].kernelSize: must be odd, got 4"},
      {"{op: GaussianBlur, kernelSize: 3, degrees: {min: 0, max: 1}}",
       "pipeline[0].degrees: GaussianBlur does not take it; it takes kernelSize, sigma"},
      {"{op: GaussianBlur, kernelSize: 3, sigma: {min: 0, max: 1}}", "sigma.min: must be above 0"},
      {"{op: GaussianBlur, kernelSize: 3, sigma: {min: 2, max: 1}}", "sigma: min 2 is above max 1"},
      {"{op: GaussianBlur, kernelSize: 3, sigma: {min: 2}}", "sigma.max: is required"},
      {"{op: GaussianBlur, kernelSize: 3, sigma: 1.5}", "sigma: must be a map of fields, got 1.5"},
      {"{op: GaussianBlur, kernelsize: 3}", "kernelsize: unknown field; did you mean kernelSize?"},
      {"{op: Resize}", "pipeline[0]: Resize needs exactly one of size and shorterSide"},
      {"{op: Resize, shorterSide: 8, size: {height: 8, width: 8}}", "needs exactly one of size"},
      {"{op: Resize, size: {height: 0, width: 8}}", "size.height: must be at least 1"},
      {"{op: Resize, size: 8}", "size: must be a map of fields, got 8"},
      {"{op: HorizontalFlip, probability: 1.5}", "probability: must be at least 0 and at most 1"},
      {"{op: ColorJitter}", "ColorJitter needs at least one of brightness"},
      {"{op: ColorJitter, brightness: {min: -1, max: 1}}", "brightness.min: must be at least 0"},
      {"{op: ColorJitter, hue: {min: -1, max: 0}}", "hue.min: must be at least -0.5"},
      {"{op: Grayscale, outputChannels: 2}", "outputChannels: must be 1 or 3"},
      {"{op: Grayscale, outputChannels: 1, probability: 0.5}",
       "must be 3 when probability is below"},
      {"{op: Normalize, mean: [0.5]}", "std: must have as many entries as mean (1), has 0"},
      {"{op: Normalize, mean: [0.5, 0.5], std: [1]}", "as many entries as mean (2), has 1"},
      {"{op: Normalize, mean: [0.5], std: [0]}", "std[0]: must be above 0"},
      {"{op: Normalize, mean: [], std: []}", "mean: has 0 entries; at least 1"},
      {"{op: Cast}", "type: is required for Cast"},
      {"{op: Delay, milliseconds: -1}", "milliseconds: must be at least 0"},
      {"{op: Plugin, path: /a.so}", "name: is required for Plugin"},
      {"{op: Plugin, name: a}", "path: is required for Plugin"},
      {"{op: Plugin, path: a.so, name: a}", "path: must be an absolute path, got 'a.so'"},
      {"{op: Plugin, path: /a.so, name: a, parameters: {n: 2}}",
       "parameters.n: must be a string: write \"2\""},
      {"{op: Python, module: a, function: f}", "outputs: is required for Python"},
      {"{op: Python, module: a-b, function: f, outputs: {image: {shape: [8, 8, 3]}}}",
       "pipeline[0].module: "},
      {"{op: Python, module: a, function: f, outputs: {image: {shape: [8, 8]}}}",
       "outputs.image.shape: has 2 entries"},
      {"{op: Python, module: a, function: f, outputs: {image: {shape: [8, 8, 65]}}}",
       "outputs.image.shape: has more than 64 channels"},
      {"{op: Python, module: a, function: f, outputs: {image: {shape: [8, 8, 3], type: Float32}}}",
       "outputs.image.type: is Uint8"},
      {"{op: Python, module: a, function: f, placement: Trainer, outputs: {image: {shape: [8, 8, "
       "3]}}}",
       "placement: Python operators run on CPU workers only"},
      {"{op: Normalize, repeat: 0}", "repeat: must be at least 1"},
      {"{op: Normalize, repeat: 101}", "repeat: must be at least 1 and at most 100"},
      {"{op: Normalize, placement: GPU}", "placement: must be one of Auto, CPUWorker, Trainer"},
  };
  for (const auto& [op, wanted] : kCases)
    EXPECT_THAT(ErrorsOfPipeline(op), HasSubstr(wanted)) << op;
}

TEST(PipelineRulesTest, AtMost32Operators) {
  std::string operators = "{op: Normalize}";
  for (int i = 1; i < 32; ++i) operators += ", {op: Normalize}";
  EXPECT_EQ(ErrorsOfPipeline(operators), "");
  EXPECT_THAT(ErrorsOfPipeline(operators + ", {op: Normalize}"),
              HasSubstr("spec.pipeline: has 33 entries; at most 32"));
}

// The constructors' defaults of torchvision.transforms.v2.
TEST(PipelineRulesTest, DefaultsAreTorchvisions) {
  EXPECT_EQ(Parsed("{op: GaussianBlur, kernelSize: 3}").sigma, (Range{0.1, 2.0}));
  const OperatorSpec crop = Parsed("{op: RandomResizedCrop, size: {height: 8, width: 8}}");
  EXPECT_EQ(crop.scale, (Range{0.08, 1.0}));
  EXPECT_EQ(crop.ratio, (Range{0.75, 4.0 / 3.0}));
  EXPECT_EQ(crop.interpolation, Interpolation::kBilinear);
  EXPECT_EQ(Parsed("{op: HorizontalFlip}").probability, 0.5);
  EXPECT_EQ(Parsed("{op: Grayscale}").output_channels, 1);
  EXPECT_EQ(Parsed("{op: Grayscale, probability: 0.1}").output_channels, 3);
  const OperatorSpec erase = Parsed("{op: RandomErasing}");
  EXPECT_EQ(erase.scale, (Range{0.02, 0.33}));
  EXPECT_EQ(erase.ratio, (Range{0.3, 3.3}));
  EXPECT_EQ(erase.probability, 0.5);
  EXPECT_EQ(erase.value, 0.0);
  EXPECT_EQ(Parsed("{op: Rotate, degrees: {min: 0, max: 1}}").interpolation,
            Interpolation::kNearest);
  EXPECT_EQ(Parsed("{op: RandAugment}").operations, 2);
  EXPECT_EQ(Parsed("{op: RandAugment}").magnitude, 9);
  EXPECT_EQ(Parsed("{op: HorizontalFlip, probability: 0}").probability, 0.0);
}

}  // namespace
}  // namespace hetero::api
