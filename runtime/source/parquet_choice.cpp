#include "runtime/source/parquet_choice.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "runtime/source/json_numbers.h"

namespace hetero::source {
namespace {

constexpr size_t kColumnsInMessages = 8;
constexpr size_t kNameInMessages = 64;
constexpr size_t kMaxHuggingFaceBytes = size_t{4} << 20;

std::string ColumnsOf(const std::vector<ParquetColumn>& columns) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(columns.size(), kColumnsInMessages); ++i) {
    names.push_back(absl::StrCat(base::ToUtf8(columns[i].path, kNameInMessages), " (",
                                 NameOf(columns[i].type), ")"));
  }
  if (columns.empty()) return "none";
  if (columns.size() > names.size()) {
    names.push_back(absl::StrCat(columns.size() - names.size(), " more"));
  }
  return absl::StrJoin(names, ", ");
}

// `inside` is looked for in a group of a name: "bytes" in Hugging Face's struct of a picture.
std::optional<size_t> FindParquetColumn(const std::vector<ParquetColumn>& columns,
                                        const std::vector<std::string>& names,
                                        std::string_view inside) {
  for (const std::string& name : names) {
    const std::string part =
        absl::StrCat(name, ".", absl::string_view(inside.data(), inside.size()));
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].path == name || (!inside.empty() && columns[i].path == part)) return i;
    }
  }
  return std::nullopt;
}

absl::Status NoColumn(const ParquetFooter& footer, const std::vector<std::string>& names,
                      const char* part, const char* field) {
  return absl::InvalidArgumentError(absl::StrCat("has no column ", absl::StrJoin(names, ", "),
                                                 "; has ", ColumnsOf(footer.columns()),
                                                 "; name the ", part, "'s in ", field));
}

// `part`: "picture", whose bytes are those of `files`.
absl::Status CheckPictureColumn(const ParquetColumn& column, const char* part, const char* files) {
  if (column.repeated) {
    return absl::InvalidArgumentError(absl::StrCat("column ", column.path,
                                                   " holds lists; a sample has one ", part,
                                                   ", write one in each row"));
  }
  if (column.type == ParquetType::kByteArray) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("column ", column.path, " is ", NameOf(column.type), ", and a ", part,
                   " is a BYTE_ARRAY: the bytes of a ", files, " file"));
}

absl::Status CheckLabelColumn(const ParquetColumn& column, const SampleRule& rule) {
  const std::string found = absl::StrCat("column ", column.path, " is ", NameOf(column.type));
  if (column.repeated) {
    return absl::InvalidArgumentError(
        absl::StrCat("column ", column.path, " holds lists, and a label is one number"));
  }
  if (column.scaled) {
    return absl::InvalidArgumentError(
        absl::StrCat(found, " of a DECIMAL, which is not read; make it a DOUBLE"));
  }
  switch (column.type) {
    case ParquetType::kInt32:
    case ParquetType::kInt64:
      return absl::OkStatus();
    case ParquetType::kFloat:
    case ParquetType::kDouble:
      if (rule.kind.type == api::LabelType::kFloat32) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat(found, ", and a whole number is wanted"));
    case ParquetType::kByteArray:
    case ParquetType::kFixedLengthByteArray:
      return absl::InvalidArgumentError(
          absl::StrCat(found,
                       ": text, and a label is a number; datasets' class_encode_column() "
                       "makes classes of texts"));
    case ParquetType::kBoolean:
    case ParquetType::kInt96:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(found, ", and a label is INT32, INT64, FLOAT or DOUBLE"));
}

// {"info": {"features": {"label": {"names": ["bird", "cat"], "_type": "ClassLabel"}}}}
std::vector<std::string> ClassNamesOf(std::string_view metadata, const std::string& column) {
  std::vector<std::string> names;
  if (metadata.empty() || metadata.size() > kMaxHuggingFaceBytes) return names;
  const absl::StatusOr<nlohmann::json> parsed = ParseShallowJson(metadata);
  if (!parsed.ok()) return names;
  const nlohmann::json* at = &*parsed;
  for (const std::string& member :
       {std::string("info"), std::string("features"), column, std::string("names")}) {
    const auto found = at->find(member);  // of what is no object, too: it has none
    if (found == at->end()) return names;
    at = &*found;
  }
  if (!at->is_array()) return names;
  for (const nlohmann::json& name : *at) {
    if (!name.is_string()) return {};
    names.push_back(name.get<std::string>());
  }
  return names;
}

}  // namespace

absl::StatusOr<ParquetChoice> ChooseParquetColumns(const ParquetFooter& footer,
                                                   const SampleRule& rule) {
  const std::vector<ParquetColumn>& columns = footer.columns();
  ParquetChoice choice;
  const std::optional<size_t> picture = FindParquetColumn(columns, rule.image, "bytes");
  if (!picture) return NoColumn(footer, rule.image, "picture", "dataset.fields.image");
  HETERO_RETURN_IF_ERROR(CheckPictureColumn(columns[*picture], "picture", "JPEG or PNG"));
  choice.picture = *picture;
  if (rule.masks()) {
    choice.mask = FindParquetColumn(columns, rule.mask, "bytes");
    if (!choice.mask) return NoColumn(footer, rule.mask, "mask", "dataset.fields.mask");
    HETERO_RETURN_IF_ERROR(CheckPictureColumn(columns[*choice.mask], "mask", "PNG"));
  }
  if (rule.label.empty()) return choice;
  choice.label = FindParquetColumn(columns, rule.label, "");
  if (!choice.label) return NoColumn(footer, rule.label, "label", "dataset.fields.label.field");
  const ParquetColumn& label = columns[*choice.label];
  HETERO_RETURN_IF_ERROR(CheckLabelColumn(label, rule));
  if (rule.classes()) {
    choice.class_names = ClassNamesOf(footer.Metadata("huggingface"), label.path);
  }
  return choice;
}

}  // namespace hetero::source
