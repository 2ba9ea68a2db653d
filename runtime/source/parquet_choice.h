#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/source/parquet_footer.h"
#include "runtime/source/sample_rule.h"

// Which columns of a Parquet file a job reads. Internal to parquet. Messages do not name the file.
namespace hetero::source {

struct ParquetChoice {
  // Numbers of the footer's columns.
  size_t picture = 0;
  std::optional<size_t> label;
  std::optional<size_t> mask;
  // The classes' names, where the file has them (a ClassLabel of Hugging Face's datasets).
  std::vector<std::string> class_names;
};

// kInvalidArgument: there is no such column, or its values are no pictures or no labels of the
// kind that is wanted.
absl::StatusOr<ParquetChoice> ChooseParquetColumns(const ParquetFooter& footer,
                                                   const SampleRule& rule);

}  // namespace hetero::source
