#include "runtime/train/device/precision.h"

#include <ATen/autocast_mode.h>

namespace hetero::train {

PrecisionScope::PrecisionScope(api::Precision precision, torch::Device place)
    : on_(precision == api::Precision::kBf16), type_(place.type()) {
  if (!on_) return;
  at::autocast::set_autocast_enabled(type_, true);
  at::autocast::set_autocast_dtype(type_, torch::kBFloat16);
  at::autocast::increment_nesting();
}

PrecisionScope::~PrecisionScope() {
  if (!on_) return;
  at::autocast::set_autocast_enabled(type_, false);
  // Weights were cast once per forward pass; the next one must see the updated ones.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
}

}  // namespace hetero::train
