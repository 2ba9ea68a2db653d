#include "api/decode.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "api/check_limits.h"
#include "api/fields.h"
#include "api/suggest.h"

namespace hetero::api {
namespace {

using nlohmann::json;

std::string Describe(const json& value) {
  switch (value.type()) {
    case json::value_t::object:
      return "a map";
    case json::value_t::array:
      return "a list";
    case json::value_t::string:
      return "the string '" + value.get<std::string>() + "'";
    case json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    default:
      return value.dump();
  }
}

template <typename T>
std::vector<std::string> FieldNames() {
  std::vector<std::string> names;
  ForEachField<T>([&](const auto& field) { names.emplace_back(field.name); });
  return names;
}

class Decoder {
 public:
  explicit Decoder(Findings& findings, std::vector<std::string>* unknown = nullptr,
                   Author author = Author::kPerson)
      : findings_(findings), unknown_(unknown), author_(author) {}

  // `strict`: fields the table does not know are errors. `limits` is handed down to a Range's ends.
  template <typename T>
  void Object(const json& value, const std::string& path, T& out, bool strict = true,
              const Limits* range = nullptr) {
    if (!value.is_object()) {
      WrongType(value, path, "a map of fields");
      return;
    }
    if (strict) UnknownFields<T>(value, path);
    ForEachField<T>([&](const auto& field) {
      const std::string child = Child(path, field.name);
      const auto found = value.find(field.name);
      if (found != value.end() && !found->is_null()) {
        RefuseEmpty<std::remove_cvref_t<decltype(out.*(field.member))>>(*found, child,
                                                                        field.limits);
        Read(*found, child, range != nullptr ? *range : field.limits, out.*(field.member));
      } else if (field.limits.presence == Presence::kRequired) {
        findings_.AddBroken(child, "is required");
      }
    });
  }

  template <typename T>
  void List(const json& value, const std::string& path, Limits limits, std::vector<T>& out) {
    if (!value.is_array()) return WrongType(value, path, "a list");
    if (author_ == Author::kOperator) limits.max_items += limits.max_added_items;
    CheckCount(value.size(), path, limits, findings_);
    out.clear();
    if (value.size() > static_cast<size_t>(limits.max_items)) return;
    for (size_t i = 0; i < value.size(); ++i) {
      Read(value[i], Element(path, i), limits, out.emplace_back());
    }
  }

 private:
  // Afterwards it could not be told from an absent one.
  template <typename T>
  void RefuseEmpty(const json& value, const std::string& path, const Limits& limits) {
    if constexpr (IsPlainObject<T>) {
      if (limits.presence != Presence::kOptional || !value.is_object() || !value.empty()) return;
      findings_.AddBroken(path, "has no fields; give some, or leave it out");
    }
  }

  template <typename T>
  void UnknownFields(const json& value, const std::string& path) {
    const std::vector<std::string> names = FieldNames<T>();
    for (const auto& [key, unused] : value.items()) {
      if (std::find(names.begin(), names.end(), key) != names.end()) continue;
      if (unknown_ != nullptr) {
        unknown_->push_back(Child(path, key));
        continue;
      }
      const std::string nearest = Nearest(key, names);
      findings_.AddBroken(Child(path, key), nearest.empty()
                                                ? "unknown field; known are " + Join(names)
                                                : "unknown field; did you mean " + nearest + "?");
    }
  }

  template <typename T>
  void Read(const json& value, const std::string& path, const Limits& limits, T& out) {
    if constexpr (IsOptional<T>::value) {
      Read(value, path, limits, out.emplace());
    } else if constexpr (IsVector<T>::value) {
      List(value, path, limits, out);
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!value.is_boolean()) return WrongType(value, path, "true or false");
      out = value.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      Integer(value, path, limits, out);
    } else if constexpr (std::is_same_v<T, double>) {
      Number(value, path, limits, out);
    } else if constexpr (std::is_same_v<T, std::string>) {
      String(value, path, limits, out);
    } else if constexpr (std::is_same_v<T, StringMap>) {
      Map(value, path, limits, out);
    } else if constexpr (std::is_enum_v<T>) {
      Enum(value, path, out);
    } else if constexpr (std::is_same_v<T, Range>) {
      Object(value, path, out, true, &limits);
    } else {
      Object(value, path, out);
    }
  }

  template <typename T>
  void Integer(const json& value, const std::string& path, const Limits& limits, T& out) {
    constexpr int64_t kSmallest = std::numeric_limits<T>::min();
    constexpr int64_t kLargest = std::numeric_limits<T>::max();
    const bool huge = value.is_number_float() && std::abs(value.get<double>()) >= 0x1p63 &&
                      std::trunc(value.get<double>()) == value.get<double>();
    if (!value.is_number_integer() && !huge) return WrongType(value, path, "a whole number");
    const bool unsigned_overflow =
        value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kLargest);
    if (huge || unsigned_overflow || value.get<int64_t>() < kSmallest ||
        value.get<int64_t>() > kLargest) {
      findings_.AddBroken(path,
                          absl::StrCat("must fit ", sizeof(T) * 8, " bits, got ", value.dump()));
      return;
    }
    out = value.get<T>();
    CheckNumber(static_cast<double>(out), path, limits, findings_);
  }

  void Number(const json& value, const std::string& path, const Limits& limits, double& out) {
    if (!value.is_number()) return WrongType(value, path, "a number");
    out = value.get<double>();
    CheckNumber(out, path, limits, findings_);
  }

  void String(const json& value, const std::string& path, const Limits& limits, std::string& out) {
    if (limits.open_object) {
      if (!value.is_object()) return WrongType(value, path, "a map");
      out = value.dump(-1, ' ', false, json::error_handler_t::replace);
      return;
    }
    if (value.is_number() || value.is_boolean()) {
      return WrongType(value, path, absl::StrCat("a string: write \"", value.dump(), "\""));
    }
    if (!value.is_string()) return WrongType(value, path, "a string");
    out = value.get<std::string>();
    CheckString(out, path, limits, findings_);
  }

  template <typename E>
  void Enum(const json& value, const std::string& path, E& out) {
    const std::vector<std::string> names = AllNames<E>();
    const std::optional<E> named =
        value.is_string() ? ValueNamed<E>(value.get<std::string>()) : std::nullopt;
    if (named.has_value()) {
      out = *named;
    } else {
      WrongType(value, path, "one of " + Join(names));
    }
  }

  void Map(const json& value, const std::string& path, const Limits& limits, StringMap& out) {
    if (!value.is_object()) return WrongType(value, path, "a map of strings");
    CheckCount(value.size(), path, limits, findings_);
    for (const auto& [key, item] : value.items()) {
      const std::string child = Child(path, key);
      if (!item.is_string()) {
        WrongType(item, child,
                  item.is_structured() ? "a string"
                                       : absl::StrCat("a string: write \"", item.dump(), "\""));
      } else if (item.get_ref<const std::string&>().size() >
                 static_cast<size_t>(limits.max_length)) {
        findings_.Add(child, absl::StrCat("is longer than ", limits.max_length, " characters"));
      } else {
        out[key] = item.get<std::string>();
      }
    }
  }

  void WrongType(const json& value, const std::string& path, const std::string& wanted) {
    findings_.AddBroken(path, absl::StrCat("must be ", wanted, ", got ", Describe(value)));
  }

  Findings& findings_;
  std::vector<std::string>* const unknown_;  // null: unknown fields are findings
  const Author author_;
};

}  // namespace

void DecodeSpec(const json& value, Spec& spec, Findings& findings,
                std::vector<std::string>* unknown, Author author) {
  Decoder(findings, unknown, author).Object(value, "spec", spec);
}

void DecodeStorage(const json& value, const std::string& path, std::vector<StorageAccess>& storage,
                   Findings& findings) {
  Decoder(findings).List(value, path, kStorageEntries, storage);
}

void DecodeOperator(const json& value, OperatorSpec& op, Findings& findings) {
  Decoder(findings).Object(value, "", op);
}

void DecodeMetadata(const json& value, Metadata& metadata, Findings& findings) {
  Decoder(findings).Object(value, "metadata", metadata, /*strict=*/false);
}

}  // namespace hetero::api
