#include "runtime/source/picture_encoding.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/source/file.h"

namespace hetero::source {

absl::Status FindEncoding(const std::string& where, std::span<const uint8_t> picture,
                          Encoding* encoding) {
  if (picture.size() >= 2 && picture[0] == 0xff && picture[1] == 0xd8) {
    *encoding = Encoding::kJpeg;
    return absl::OkStatus();
  }
  if (picture.size() >= 4 && picture[0] == 0x89 && picture[1] == 'P' && picture[2] == 'N' &&
      picture[3] == 'G') {
    *encoding = Encoding::kPng;
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat(where, ": not a JPEG or PNG file (starts with ", FirstBytes(picture), ")"));
}

void KeepOnly(std::span<const uint8_t> part, std::vector<uint8_t>* bytes) {
  if (!part.empty()) std::memmove(bytes->data(), part.data(), part.size());
  bytes->resize(part.size());
}

}  // namespace hetero::source
