#include "runtime/source/mds_sample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "runtime/job/field_set.h"
#include "runtime/source/little_endian.h"

namespace hetero::source {
namespace {

using Bytes = std::span<const uint8_t>;

absl::StatusOr<size_t> FindColumn(const std::vector<MdsColumn>& columns,
                                  const std::vector<std::string>& names, const char* part,
                                  const char* field) {
  for (const std::string& name : names) {
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].name == name) return i;
    }
  }
  const std::string there =
      absl::StrJoin(columns, ", ", [](std::string* text, const MdsColumn& column) {
        absl::StrAppend(text, column.name, " (", column.encoding, ")");
      });
  return absl::InvalidArgumentError(absl::StrCat("has no column ", absl::StrJoin(names, ", "),
                                                 "; has ", there, "; name the ", part, "'s in ",
                                                 field));
}

absl::Status CheckPicture(const MdsColumn& column) {
  for (const char* encoding : {"jpeg", "png", "bytes", "jpeg_array"}) {
    if (column.encoding == encoding) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("has pictures of the encoding ", column.encoding, " in the column ", column.name,
                   "; write them as jpeg, png or bytes of such files"));
}

absl::Status CheckMask(const MdsColumn& column) {
  if (column.encoding == "png" || column.encoding == "bytes") return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("has masks of the encoding ", column.encoding,
                                                 " in the column ", column.name,
                                                 "; write them as png or bytes of such files"));
}

// A number of `bytes` bytes as it lies in a file.
template <typename T>
T As(const uint8_t* at) {
  T number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

int64_t IntAt(const uint8_t* at, char kind, size_t bytes) {
  const bool is_signed = kind == 'i';
  switch (bytes) {
    case 1:
      return is_signed ? As<int8_t>(at) : As<uint8_t>(at);
    case 2:
      return is_signed ? As<int16_t>(at) : As<uint16_t>(at);
    case 4:
      return is_signed ? As<int32_t>(at) : int64_t{As<uint32_t>(at)};
    default:
      // A uint64 beyond int64 becomes negative, which is no class.
      return As<int64_t>(at);
  }
}

float FloatAt(const uint8_t* at, size_t bytes) {
  return bytes == 4 ? As<float>(at) : static_cast<float>(As<double>(at));
}

}  // namespace

absl::StatusOr<MdsColumns::Numbers> MdsColumns::NumbersOf(const MdsColumn& column) {
  std::string type = column.encoding;
  if (const std::vector<std::string> parts = absl::StrSplit(type, ':'); parts[0] == "ndarray") {
    if (parts.size() != 3) {
      return absl::InvalidArgumentError(absl::StrCat("has labels of the encoding ", column.encoding,
                                                     " in the column ", column.name,
                                                     "; name type and shape: ndarray:float32:2,2"));
    }
    type = parts[1];
  }
  if (type == "int") type = "int64";
  if (type == "str_int" || type == "str_float") return Numbers{'s', 0};
  static constexpr struct {
    const char* name;
    Numbers numbers;
  } kTypes[] = {{"int8", {'i', 1}},   {"int16", {'i', 2}},  {"int32", {'i', 4}},
                {"int64", {'i', 8}},  {"uint8", {'u', 1}},  {"uint16", {'u', 2}},
                {"uint32", {'u', 4}}, {"uint64", {'u', 8}}, {"float32", {'f', 4}},
                {"float64", {'f', 8}}};
  for (const auto& known : kTypes) {
    if (type == known.name) return known.numbers;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("has labels of the encoding ", column.encoding, " in the column ", column.name,
                   "; write them as int, float32 or ndarray:float32:SHAPE"));
}

absl::StatusOr<MdsColumns> MdsColumns::Find(const MdsIndex& index, const SampleRule& rule) {
  for (const MdsColumn& column : index.columns) {
    if (column.encoding != "pkl") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("has pickled values in the column ", column.name,
                     ", which only Python can read; write the dataset without it"));
  }
  MdsColumns found;
  found.columns_ = index.columns;
  found.rule_ = rule;
  HETERO_ASSIGN_OR_RETURN(found.picture_,
                          FindColumn(index.columns, rule.image, "picture", "dataset.fields.image"));
  HETERO_RETURN_IF_ERROR(CheckPicture(index.columns[found.picture_]));
  if (rule.masks()) {
    HETERO_ASSIGN_OR_RETURN(found.mask_,
                            FindColumn(index.columns, rule.mask, "mask", "dataset.fields.mask"));
    HETERO_RETURN_IF_ERROR(CheckMask(index.columns[found.mask_]));
  }
  if (rule.label.empty()) return found;
  HETERO_ASSIGN_OR_RETURN(
      found.label_, FindColumn(index.columns, rule.label, "label", "dataset.fields.label.field"));
  const MdsColumn& label = index.columns[found.label_];
  HETERO_ASSIGN_OR_RETURN(found.numbers_, NumbersOf(label));
  const bool floats = rule.kind.type == api::LabelType::kFloat32;
  if (!floats && (found.numbers_.kind == 'f' || label.encoding == "str_float")) {
    return absl::InvalidArgumentError(absl::StrCat("has ", label.encoding, " in the column ",
                                                   label.name, ", and a whole number is wanted"));
  }
  return found;
}

absl::StatusOr<MdsColumns::Parts> MdsColumns::Split(std::span<const uint8_t> sample) const {
  Parts parts;
  size_t varying = 0;
  for (const MdsColumn& column : columns_) varying += column.size < 0;
  const absl::Status damaged = absl::DataLossError(
      absl::StrCat("a sample of ", sample.size(), " bytes whose columns have other sizes"));
  size_t size_at = 0;
  uint64_t at = 4 * varying;
  if (at > sample.size()) return damaged;
  for (size_t i = 0; i < columns_.size(); ++i) {
    uint64_t size = static_cast<uint64_t>(columns_[i].size);
    if (columns_[i].size < 0) {
      size = WordAt(sample, size_at);
      size_at += 4;
    }
    if (size > sample.size() - at) return damaged;
    const Bytes bytes = sample.subspan(at, size);
    if (i == picture_) parts.picture = bytes;
    if (i == mask_ && rule_.masks()) parts.mask = bytes;
    if (i == label_ && !rule_.label.empty()) parts.label = bytes;
    at += size;
  }
  if (at != sample.size()) return damaged;
  return parts;
}

absl::StatusOr<int32_t> MdsColumns::ClassIn(std::span<const uint8_t> label) const {
  const std::string& name = columns_[label_].name;
  if (numbers_.kind == 's') {
    int64_t number = 0;
    const absl::string_view text(reinterpret_cast<const char*>(label.data()), label.size());
    if (!absl::SimpleAtoi(text, &number)) {
      return absl::DataLossError(absl::StrCat(name, " is no whole number"));
    }
    return ClassOf(number, rule_);
  }
  if (label.size() != numbers_.bytes) {
    return absl::DataLossError(
        absl::StrCat(name, " has ", label.size(), " bytes, and a class is ", numbers_.bytes));
  }
  return ClassOf(IntAt(label.data(), numbers_.kind, numbers_.bytes), rule_);
}

absl::Status MdsColumns::NumbersIn(std::span<const uint8_t> label,
                                   std::vector<uint8_t>* numbers) const {
  const job::FieldSpec field = job::FieldsOf(rule_.kind)->front();
  const std::string& name = columns_[label_].name;
  const auto wanted = static_cast<size_t>(field.numbers());
  const bool text = numbers_.kind == 's';
  if (text ? wanted != 1 : label.size() != wanted * numbers_.bytes) {
    return absl::DataLossError(absl::StrCat(name, " has ", label.size(), " bytes, and not ", wanted,
                                            " numbers as dataset.label says"));
  }
  numbers->resize(static_cast<size_t>(field.bytes()));
  for (size_t i = 0; i < wanted; ++i) {
    const uint8_t* at = label.data() + i * numbers_.bytes;
    const absl::string_view digits(reinterpret_cast<const char*>(label.data()), label.size());
    if (field.type == job::FieldType::kInt64) {
      int64_t number = 0;
      if (text ? !absl::SimpleAtoi(digits, &number) : false) {
        return absl::DataLossError(absl::StrCat(name, " is no whole number"));
      }
      if (!text) number = IntAt(at, numbers_.kind, numbers_.bytes);
      std::memcpy(numbers->data() + i * sizeof number, &number, sizeof number);
    } else {
      float number = 0;
      if (text ? !absl::SimpleAtof(digits, &number) : false) {
        return absl::DataLossError(absl::StrCat(name, " is no number"));
      }
      if (!text) {
        number = numbers_.kind == 'f'
                     ? FloatAt(at, numbers_.bytes)
                     : static_cast<float>(IntAt(at, numbers_.kind, numbers_.bytes));
      }
      if (!std::isfinite(number)) {
        return absl::DataLossError(absl::StrCat(name, " is no finite number"));
      }
      std::memcpy(numbers->data() + i * sizeof number, &number, sizeof number);
    }
  }
  return absl::OkStatus();
}

}  // namespace hetero::source
