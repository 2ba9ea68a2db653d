#include "runtime/source/json_numbers.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::source {
namespace {

// Those of `value`, which has the shape [shape[depth], ...]; moves `*out` behind them.
absl::Status Flatten(const nlohmann::json& value, const api::Label& label, size_t depth,
                     uint8_t** out) {
  if (depth < label.shape.size()) {
    const auto wanted = static_cast<size_t>(label.shape[depth]);
    if (!value.is_array() || value.size() != wanted) {
      return absl::InvalidArgumentError(
          value.is_array() ? absl::StrCat("has a list of ", value.size(), ", not of ", wanted)
                           : absl::StrCat("is no list of ", wanted));
    }
    for (const nlohmann::json& element : value) {
      HETERO_RETURN_IF_ERROR(Flatten(element, label, depth + 1, out));
    }
    return absl::OkStatus();
  }
  const auto put = [out](auto number) {
    std::memcpy(*out, &number, sizeof number);
    *out += sizeof number;
  };
  if (label.type == api::LabelType::kInt64) {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
    if (!fits) return absl::InvalidArgumentError("is no whole number of 64 bits");
    put(value.get<int64_t>());
    return absl::OkStatus();
  }
  const auto number = value.is_number() ? static_cast<float>(value.get<double>())
                                        : std::numeric_limits<float>::infinity();
  if (!std::isfinite(number)) return absl::InvalidArgumentError("is no number of 32 bits");
  put(number);
  return absl::OkStatus();
}

}  // namespace

absl::Status FlattenNumbers(const nlohmann::json& value, const api::Label& label, uint8_t* out) {
  return Flatten(value, label, 0, &out);
}

}  // namespace hetero::source
