#include "runtime/source/json_numbers.h"

#include <algorithm>
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

absl::StatusOr<nlohmann::json> ParseShallowJson(std::string_view text) {
  constexpr int kMostDepth = 16;
  int deepest = 0;
  nlohmann::json value = nlohmann::json::parse(
      text,
      [&deepest](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
        deepest = std::max(deepest, depth);
        return depth <= kMostDepth;  // or it is dropped at once
      },
      /*allow_exceptions=*/false);
  if (deepest > kMostDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("is nested deeper than ", kMostDepth, " levels"));
  }
  if (value.is_discarded()) return absl::InvalidArgumentError("is no JSON");
  return value;
}

}  // namespace hetero::source
