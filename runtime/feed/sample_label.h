#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/source/dataset.h"

// Where a batch has the labels of its samples: classes in Batch::labels, or, beside other tensors,
// as numbers in the field "label", where all other labels are.
namespace hetero::feed {

// Writes the label of `sample`, a class where `is_class`, into entry `index` of `batch`. kInternal
// when the dataset has read no such label.
absl::Status TakeLabel(const source::RawSample& sample, bool is_class, int64_t index, Batch* batch);

// The class of entry `index`, whose labels are classes; negative where it has none.
int64_t ClassOf(const Batch& batch, int64_t index);

}  // namespace hetero::feed
