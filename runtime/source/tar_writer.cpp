#include "runtime/source/tar_writer.h"

#include <cassert>
#include <cstdio>

namespace hetero::source {
namespace {

constexpr int64_t kMostFileBytes = (int64_t{8} << 30) - 1;  // eleven octal digits
constexpr size_t kChecksumAt = 148;

}  // namespace

std::string TarHeader(std::string_view name, int64_t size) {
  assert(!name.empty() && name.size() <= 100 && size >= 0 && size <= kMostFileBytes);
  std::string header(kTarBlock, '\0');
  const auto put = [&header](size_t at, std::string_view text) {
    header.replace(at, text.size(), text);
  };
  char number[16];
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");  // owner
  put(116, "0000000");  // group
  std::snprintf(number, sizeof number, "%011llo", static_cast<unsigned long long>(size));
  put(124, number);
  put(136, "00000000000");                       // time of the last change
  put(kChecksumAt, "        ");                  // as it is summed
  put(156, "0");                                 // a regular file
  put(257, std::string_view("ustar\00000", 8));  // magic and version
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(number, sizeof number, "%06o", sum);
  put(kChecksumAt, {number, 7});  // with its zero; the space behind stays
  return header;
}

}  // namespace hetero::source
