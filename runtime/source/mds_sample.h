#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/source/mds_index.h"
#include "runtime/source/sample_rule.h"

// One sample of an MDS dataset. Internal to mds.
namespace hetero::source {

// Which columns a job reads, and how.
class MdsColumns {
 public:
  // kInvalidArgument names the columns that there are, or the encoding that is not read.
  static absl::StatusOr<MdsColumns> Find(const MdsIndex& index, const SampleRule& rule);

  struct Parts {
    std::span<const uint8_t> picture;
    std::span<const uint8_t> label;  // empty where none is wanted
    std::span<const uint8_t> mask;   // likewise
  };
  // kDataLoss: the columns' sizes are not the sample's.
  absl::StatusOr<Parts> Split(std::span<const uint8_t> sample) const;

  absl::StatusOr<int32_t> ClassIn(std::span<const uint8_t> label) const;
  absl::Status NumbersIn(std::span<const uint8_t> label, std::vector<uint8_t>* numbers) const;

 private:
  // What a label's bytes are.
  struct Numbers {
    char kind = 'i';   // int, uint, float; 's': a number in text
    size_t bytes = 8;  // of each
  };
  static absl::StatusOr<Numbers> NumbersOf(const MdsColumn& column);

  std::vector<MdsColumn> columns_;
  SampleRule rule_;
  size_t picture_ = 0;
  size_t label_ = 0;
  size_t mask_ = 0;
  Numbers numbers_;
};

}  // namespace hetero::source
