#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/source/dataset.h"
#include "runtime/source/shard_source.h"

namespace hetero::source {

// The binary versions of CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html),
// unpacked, or in the archive that they are published as (unpacked_archive.h), which is read where
// no unpacked files are: records of a label (CIFAR-100: a coarse and a fine one) and 32x32 pixels
// in three planes, which become raw [32, 32, 3].
//
// CIFAR-10 trains on data_batch_1.bin and so on and validates on test_batch.bin, with the classes'
// names in batches.meta.txt; CIFAR-100 has train.bin, test.bin and names in fine_label_names.txt.
// There `dataset.fields.label.field: coarse` takes the 20 superclasses.
bool IsCifar10Name(std::string_view name);
bool IsCifar100Name(std::string_view name);
// The folders that the published archives unpack to.
bool IsCifar10Folder(std::string_view name);
bool IsCifar100Folder(std::string_view name);

// A file whose size is no multiple of a record's gives kInvalidArgument with both, labels that are
// no classes kUnimplemented.
absl::StatusOr<std::unique_ptr<Dataset>> OpenCifar10(const ShardSource& shards,
                                                     const api::DatasetSource& source,
                                                     job::Split split, const api::Label& label);
absl::StatusOr<std::unique_ptr<Dataset>> OpenCifar100(const ShardSource& shards,
                                                      const api::DatasetSource& source,
                                                      job::Split split, const api::Label& label);

}  // namespace hetero::source
