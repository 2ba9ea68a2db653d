#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace hetero::commands {

// For an option: takes one of these names, in any case, for its value. An error lists them.
template <typename Type>
CLI::Validator OneOf(const std::map<std::string, Type>& names) {
  std::string list;
  for (const auto& [name, value] : names) absl::StrAppend(&list, list.empty() ? "" : ", ", name);
  const auto take = [names, list](std::string& given) -> std::string {
    for (const auto& [name, value] : names) {
      if (absl::AsciiStrToLower(name) != absl::AsciiStrToLower(given)) continue;
      given = std::to_string(static_cast<std::underlying_type_t<Type>>(value));
      return "";
    }
    return absl::StrCat("\"", given, "\" is none of ", list);
  };
  return CLI::Validator(take, list);
}

}  // namespace hetero::commands
