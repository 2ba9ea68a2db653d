#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/storage/store.h"

namespace hetero::source {

inline constexpr char kPictureNumbersFile[] = "metadata.jsonl";

// Labels that are no classes, of a folder of pictures. They stand beside the pictures in
// metadata.jsonl, as Hugging Face's ImageFolder has it: on each line an object with `file_name`,
// the picture's path from the folder, and the label under the name that the manifest gives, else
// "label": a number, or lists of numbers of the manifest's shape.
struct PictureNumbers {
  std::vector<uint8_t> numbers;  // of all pictures, in their order; int64 or float32, little-endian
  uint32_t checksum = 0;         // CRC32C of the file
};

// Those of `pictures`, paths from `root`, which is a folder's path, or the URI of a `store`, null
// for a folder. Each has one line. kNotFound: no such file; kInvalidArgument names the line and
// what is wrong with it, or the picture without one.
absl::StatusOr<PictureNumbers> ReadPictureNumbers(const std::string& root,
                                                  const storage::Store* store,
                                                  const api::Label& label,
                                                  const std::vector<std::string>& pictures);

}  // namespace hetero::source
