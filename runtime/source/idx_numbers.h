#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/source/idx_file.h"

namespace hetero::source {

// Labels that are no classes: an IDX file of numbers of its own, [count, shape]. Its name says what
// it holds, as the format's do: train-FIELD-idx2-float, where FIELD is `labels` unless the manifest
// names another. Int64 takes ubyte, byte, short and int, Float32 takes float. The file lies in
// memory. Internal to idx.
class IdxNumbers {
 public:
  // kNotFound names what was looked for; a wrong type, shape or size gives kInvalidArgument or
  // kDataLoss with file and byte offset.
  static absl::StatusOr<IdxNumbers> Open(const IdxFolder& folder, job::Split split,
                                         const api::Label& label);

  const IdxFile& file() const { return file_; }
  // Sample `id`'s, little-endian, as int64 or float32.
  void Read(int64_t id, std::vector<uint8_t>* numbers) const;

 private:
  struct Type;
  static const Type kTypes[];

  IdxFile file_;
  const Type* type_ = nullptr;
  size_t header_ = 0;
  int64_t of_sample_ = 1;  // numbers
};

}  // namespace hetero::source
