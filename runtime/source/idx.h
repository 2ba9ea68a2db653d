#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/source/dataset.h"
#include "runtime/storage/store.h"

namespace hetero::source {

// What a folder of this format holds, for messages.
inline constexpr char kIdxFiles[] =
    "an IDX dataset is four files in one folder, each plain or with .gz: train-images-idx3-ubyte, "
    "train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte";

// MNIST's IDX format (http://yann.lecun.com/exdb/mnist): big-endian headers, images under magic
// 0x00000803 with [count, height, width], labels under 0x00000801 with [count], one byte each.
inline constexpr uint32_t kIdxImagesMagic = 0x00000803;
inline constexpr uint32_t kIdxLabelsMagic = 0x00000801;

// Whether `name` is spelled like an images file: "...-images-idx3-ubyte" or
// "...-images.idx3-ubyte", with or without ".gz".
bool IsIdxImagesName(std::string_view name);

// Opens train-* (kTrain) or t10k-* (kValidation) of a folder, plain or gzipped, and keeps them
// decompressed in memory. `root` is the folder's path, or the URI of `store`, which is null for a
// folder and else only used here. Samples are raw uint8 [height, width, 1]. Without `classes` in
// the manifest there are max label + 1; with it, a label beyond it makes Read give kDataLoss. With
// another `label` there are no classes but those declared, and its numbers come from a file of
// their own (idx_numbers.h), or there are none.
// kNotFound names the four spellings looked for; a wrong magic, size or count gives kDataLoss or
// kInvalidArgument with file and byte offset.
absl::StatusOr<std::unique_ptr<Dataset>> OpenIdx(const std::string& root,
                                                 const storage::Store* store,
                                                 const api::DatasetSource& source, job::Split split,
                                                 const api::Label& label = {});

}  // namespace hetero::source
