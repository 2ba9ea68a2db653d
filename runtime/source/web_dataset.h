#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/source/dataset.h"
#include "runtime/source/shard_source.h"

namespace hetero::source {

// WebDataset (https://github.com/webdataset/webdataset): tar archives whose consecutive files of
// one name up to the first dot are one sample; the rest of the name, in lower case, says which of
// its fields a file is. Files without such a rest and those named __x__ are passed over.
//
// The picture is the field jpg, png or jpeg, a class the number in the field cls, other labels the
// JSON in json under "label". dataset.fields names other fields, and behind a "/" what is meant of
// a field that is JSON: json/label, json/annotations/0/category.
bool IsWebDatasetName(std::string_view name);

// Every archive is gone through once, so a class that is no number, a sample without picture or
// label, a field that a sample has twice are found here: kInvalidArgument names archive, byte and
// sample.
absl::StatusOr<std::unique_ptr<Dataset>> OpenWebDataset(const ShardSource& shards,
                                                        const api::DatasetSource& source,
                                                        job::Split split, const api::Label& label);

}  // namespace hetero::source
