#include "api/byte_size.h"

#include <charconv>

namespace hetero::api {
namespace {

constexpr int64_t kMost = 99'999;

}  // namespace

std::optional<int64_t> Bytes(std::string_view text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || count < 1 || count > kMost) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit == "Mi") return count << 20;
  if (unit == "Gi") return count << 30;
  return std::nullopt;
}

}  // namespace hetero::api
