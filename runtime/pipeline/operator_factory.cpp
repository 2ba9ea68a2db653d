#include "runtime/pipeline/operator_factory.h"

#include "runtime/pipeline/colour.h"
#include "runtime/pipeline/crop.h"
#include "runtime/pipeline/delay.h"
#include "runtime/pipeline/erase.h"
#include "runtime/pipeline/flip.h"
#include "runtime/pipeline/gaussian_blur.h"
#include "runtime/pipeline/grayscale.h"
#include "runtime/pipeline/plugin_operator.h"
#include "runtime/pipeline/python_operator.h"
#include "runtime/pipeline/rand_augment.h"
#include "runtime/pipeline/resize.h"
#include "runtime/pipeline/warp.h"

// An operator that the manifest knows and nothing makes is an error of the compiler.
#pragma GCC diagnostic error "-Wswitch"

namespace hetero::pipeline {

absl::StatusOr<Operators> MakeOperators(const api::OperatorSpec& spec,
                                        const OperatorContext& context) {
  using enum api::OperatorKind;
  switch (spec.op) {
    case kResize:
      return MakeResize(spec, context);
    case kCenterCrop:
      return MakeCenterCrop(spec, context);
    case kRandomResizedCrop:
      return MakeRandomResizedCrop(spec, context);
    case kHorizontalFlip:
      return MakeHorizontalFlip(spec, context);
    case kVerticalFlip:
      return MakeVerticalFlip(spec, context);
    case kRotate:
      return MakeRotate(spec, context);
    case kColorJitter:
      return MakeColorJitter(spec, context);
    case kGrayscale:
      return MakeGrayscale(spec, context);
    case kGaussianBlur:
      return MakeGaussianBlur(spec, context);
    case kRandomErasing:
      return MakeRandomErasing(spec, context);
    case kRandAugment:
      return MakeRandAugment(spec, context);
    case kDelay:
      return MakeDelay(spec, context);
    case kPlugin:
      return MakePlugin(spec, context);
    case kPython:
      return MakePython(spec, context);
    case kDecode:
    case kNormalize:
    case kCast:
      break;
  }
  return absl::InvalidArgumentError("is not an operator on uint8 pictures");
}

}  // namespace hetero::pipeline
