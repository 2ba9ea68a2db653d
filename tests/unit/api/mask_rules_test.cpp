#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/api/test_manifest.h"

namespace hetero::api {
namespace {

using ::testing::HasSubstr;

// A job whose samples have a mask; `pipeline` is the list's content.
std::string ErrorsWithMask(const std::string& pipeline, std::vector<std::string> overrides = {}) {
  std::vector<std::string> all = {
      "dataset={uri: 'file:///data', format: WebDataset, fields: {mask: seg.png}}",
      "training={script: {command: [python3, train.py]}, batchSizePerWorker: 8, maxSteps: 5}",
      "pipeline=[" + pipeline + "]"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return ErrorsOf(all);
}

TEST(MaskRules, EveryOperatorThatMovesPixelsNamesTheMask) {
  EXPECT_EQ(ErrorsWithMask("{op: Decode}, {op: Resize, shorterSide: 9, also: [mask]}, "
                           "{op: RandomResizedCrop, size: {height: 8, width: 8}, also: [mask]}, "
                           "{op: HorizontalFlip, also: [mask]}, {op: VerticalFlip, also: [mask]}, "
                           "{op: Rotate, degrees: {min: -9, max: 9}, also: [mask]}, "
                           "{op: CenterCrop, size: {height: 8, width: 8}, also: [mask]}, "
                           "{op: GaussianBlur, kernelSize: 3}, {op: RandomErasing}, "
                           "{op: ColorJitter, hue: {min: 0, max: 0.1}}, {op: Grayscale}, "
                           "{op: Delay, milliseconds: 1}, {op: Normalize}"),
            "");
  EXPECT_THAT(
      ErrorsWithMask("{op: Decode}, {op: HorizontalFlip}"),
      HasSubstr("spec.pipeline[1].also: HorizontalFlip moves the picture's pixels and would "
                "leave those of the field mask; write also: [mask]"));
  EXPECT_THAT(ErrorsWithMask("{op: RandAugment}"),
              HasSubstr("spec.pipeline[0]: RandAugment may move the picture's pixels"));
  EXPECT_THAT(ErrorsWithMask("{op: Plugin, path: /a.so, name: a}"),
              HasSubstr("spec.pipeline[0]: Plugin may move the picture's pixels"));
  EXPECT_THAT(ErrorsWithMask("{op: Python, path: /a, module: m, function: f, "
                             "outputs: {image: {shape: [8, 8, 3]}}}"),
              HasSubstr("spec.pipeline[0]: Python may move the picture's pixels"));
  EXPECT_THAT(ErrorsWithMask("{op: ColorJitter, hue: {min: 0, max: 0.1}, also: [mask]}"),
              HasSubstr("spec.pipeline[0].also: ColorJitter does not take it"));
  EXPECT_THAT(ErrorsWithMask("{op: HorizontalFlip, also: [mask, mask]}"),
              HasSubstr("spec.pipeline[0].also[1]: mask is given twice"));
  EXPECT_THAT(ErrorsWithMask("{op: HorizontalFlip, also: [mask, depth]}"),
              HasSubstr("spec.pipeline[0].also[1]: there is no mask of the name depth; there is "
                        "mask"));
  EXPECT_THAT(ErrorsWithMask("{op: GaussianBlur, kernelSize: 3, placement: Trainer}"),
              HasSubstr("spec.pipeline[0].placement: must not be Trainer"));
}

TEST(MaskRules, ItMayHaveAnotherName) {
  EXPECT_EQ(
      ErrorsWithMask("{op: HorizontalFlip, also: [seg]}", {"dataset.mask={name: seg, fill: 255}"}),
      "");
  EXPECT_THAT(ErrorsWithMask("{op: HorizontalFlip, also: [mask]}", {"dataset.mask={name: seg}"}),
              HasSubstr("there is no mask of the name mask; there is seg"));
  for (const std::string taken : {"image", "label", "ids", "slots"}) {
    EXPECT_THAT(ErrorsWithMask("", {"dataset.mask={name: " + taken + "}"}),
                HasSubstr("spec.dataset.mask.name: " + taken + " names something else of a batch"));
  }
  EXPECT_THAT(ErrorsWithMask("", {"dataset.mask={fill: 256}"}),
              HasSubstr("spec.dataset.mask.fill: must be at least 0 and at most 255"));
}

TEST(MaskRules, OfDatasets) {
  EXPECT_THAT(ErrorsWithMask("", {"dataset.fields=", "dataset.mask={fill: 1}"}),
              HasSubstr("spec.dataset.mask: is taken only with spec.dataset.fields.mask"));
  EXPECT_THAT(ErrorsWithMask("", {"dataset.validation={uri: 'file:///val'}"}),
              HasSubstr("spec.dataset.validation.fields.mask: is required beside"));
  EXPECT_EQ(
      ErrorsWithMask("", {"dataset.validation={uri: 'file:///val', fields: {mask: seg.png}}"}), "");
  EXPECT_THAT(
      ErrorsWithMask("", {"dataset.fields=",
                          "dataset.validation={uri: 'file:///val', fields: {mask: seg.png}}"}),
      HasSubstr("spec.dataset.validation.fields.mask: is taken only with"));
  EXPECT_THAT(ErrorsOf({"pipeline=[{op: HorizontalFlip, also: [mask]}]"}),
              HasSubstr("spec.pipeline[0].also[0]: there is no mask of the name mask; name its "
                        "field in spec.dataset.fields.mask"));
}

TEST(MaskRules, ItGoesWithOneView) {
  EXPECT_EQ(ErrorsWithMask("{op: HorizontalFlip, also: [mask], views: [image]}",
                           {"views=[{name: image}]"}),
            "");
  for (const std::string views : {"{name: image, count: 2}", "{name: local}"}) {
    EXPECT_THAT(
        ErrorsWithMask("{op: HorizontalFlip, also: [mask]}", {"views=[" + views + "]"}),
        HasSubstr("spec.views: samples have the field mask, which goes with one view of a picture; "
                  "leave out several views or spec.dataset.fields.mask"));
  }
}

TEST(MaskRules, ModelsTakeNone) {
  EXPECT_THAT(
      ErrorsOf({"dataset={uri: 'file:///data', fields: {mask: seg.png}}", "pipeline=[]"}),
      HasSubstr("spec.dataset.fields.mask: models take picture and class, and the field mask is "
                "for spec.training.script alone"));
}

}  // namespace
}  // namespace hetero::api
