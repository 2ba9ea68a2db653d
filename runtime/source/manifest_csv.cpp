#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "runtime/job/field_set.h"
#include "runtime/source/json_numbers.h"
#include "runtime/source/manifest_entry.h"
#include "runtime/source/picture_listing.h"
#include "runtime/source/shard_source.h"

namespace hetero::source {
namespace {

constexpr size_t kMostColumns = 1024;

// Takes records apart (RFC 4180): fields in quotes may hold separators, line ends and doubled
// quotes.
class RecordReader {
 public:
  RecordReader(ByteStream& text, char separator) : text_(text), separator_(separator) {}

  // False at the end. Empty lines are passed over.
  absl::StatusOr<bool> Next(std::vector<std::string>* fields) {
    do {
      fields->assign(1, "");
      bytes_ = 0;
      line_ = text_.line();
      if (text_.Peek() == ByteStream::kEnd) return false;
      while (true) {
        HETERO_ASSIGN_OR_RETURN(const bool more, NextField(&fields->back()));
        if (!more) break;
        if (fields->size() == kMostColumns) return TooLong();
        fields->emplace_back();
      }
    } while (fields->size() == 1 && fields->front().empty());
    return true;
  }

  int64_t line() const { return line_; }  // that the record begins on

 private:
  static absl::Status TooLong() {
    return absl::InvalidArgumentError(
        absl::StrCat("has more than ", kMostEntryBytes, " bytes or ", kMostColumns,
                     " columns; a quote may be missing, or it is no such table"));
  }

  // Whether another field of the record comes behind it.
  absl::StatusOr<bool> NextField(std::string* field) {
    const bool quoted = text_.Peek() == '"';
    if (quoted) HETERO_RETURN_IF_ERROR(TakeQuoted(field));
    while (true) {
      const int byte = text_.Next();
      if (byte == separator_) return true;
      if (byte == '\n' || byte == ByteStream::kEnd) return false;
      if (byte == '\r' && (text_.Peek() == '\n' || text_.Peek() == ByteStream::kEnd)) continue;
      if (quoted || byte == '"') {
        return absl::InvalidArgumentError(
            "has a quote inside a field; put the field into quotes and double those inside");
      }
      HETERO_RETURN_IF_ERROR(Append(byte, field));
    }
  }

  absl::Status TakeQuoted(std::string* field) {
    text_.Next();
    while (true) {
      const int byte = text_.Next();
      if (byte == ByteStream::kEnd) {
        return absl::InvalidArgumentError("has a quote that is not closed; close it");
      }
      if (byte == '"') {
        if (text_.Peek() != '"') return absl::OkStatus();
        text_.Next();
      }
      HETERO_RETURN_IF_ERROR(Append(byte, field));
    }
  }

  absl::Status Append(int byte, std::string* field) {
    if (++bytes_ > kMostEntryBytes) return TooLong();
    field->push_back(static_cast<char>(byte));
    return absl::OkStatus();
  }

  ByteStream& text_;
  const char separator_;
  size_t bytes_ = 0;  // of the record
  int64_t line_ = 1;
};

class RecordTaker {
 public:
  RecordTaker(const SampleRule& rule, bool named, const ManifestSink& sink)
      : rule_(rule), named_(named), sink_(sink) {
    if (rule.kind.numbers()) {
      entry_.numbers.resize(static_cast<size_t>(job::FieldsOf(rule.kind)->front().bytes()));
    }
  }

  absl::Status Take(const std::vector<std::string>& fields, int64_t line) {
    if (columns_ == 0) {
      columns_ = fields.size();
      HETERO_ASSIGN_OR_RETURN(const bool is_header, FindColumns(fields));
      if (is_header) return absl::OkStatus();
    }
    if (fields.size() != columns_) {
      return absl::InvalidArgumentError(absl::StrCat("has ", fields.size(),
                                                     " columns, and the first line has ", columns_,
                                                     "; put what holds a separator into quotes"));
    }
    entry_.path = fields[path_];
    if (mask_) entry_.mask = fields[*mask_];
    entry_.line = line;
    if (label_) HETERO_RETURN_IF_ERROR(TakeLabel(fields[*label_]));
    return sink_(entry_);
  }

 private:
  std::optional<size_t> Find(const std::vector<std::string>& header,
                             const std::vector<std::string>& names) const {
    for (const std::string& name : names) {
      for (size_t i = 0; i < header.size(); ++i) {
        const absl::string_view column = absl::StripAsciiWhitespace(header[i]);
        if (named_ ? column == name : absl::EqualsIgnoreCase(column, name)) return i;
      }
    }
    return std::nullopt;
  }

  // Whether the first record is a header: names that are looked for, and no picture's.
  absl::StatusOr<bool> FindColumns(const std::vector<std::string>& first) {
    const bool wanted = rule_.kind.type != api::LabelType::kNone;
    const std::optional<size_t> path = Find(first, rule_.image);
    if (path) {
      path_ = *path;
      if (rule_.masks()) {
        mask_ = Find(first, rule_.mask);
        if (!mask_) {
          return absl::InvalidArgumentError(absl::StrCat(
              "is a header without a column ", absl::StrJoin(rule_.mask, ", "), "; has ",
              SummaryOf(first), "; name that of the masks' paths in dataset.fields.mask"));
        }
      }
      if (!wanted) return true;
      label_ = Find(first, rule_.label);
      // Of two columns the other one.
      if (!label_ && !named_ && first.size() == 2) label_ = 1 - path_;
      if (label_) return true;
      return absl::InvalidArgumentError(
          absl::StrCat("is a header without a column ", absl::StrJoin(rule_.label, ", "), "; has ",
                       SummaryOf(first),
                       "; name the label's in dataset.fields.label.field, or set "
                       "dataset.label.type: None"));
    }
    if (named_ || !IsPictureName(first.front())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "has no column ", absl::StrJoin(rule_.image, ", "), "; has ", SummaryOf(first),
          "; name the picture's in dataset.fields.image, or write a first line path,label"));
    }
    if (first.size() > 2 || (wanted && first.size() < 2)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "has ", first.size(), " columns and no header, and a path and a label are expected; ",
          "write a first line with the columns' names, such as path,label"));
    }
    if (wanted) label_ = 1;
    return false;
  }

  absl::Status TakeLabel(const std::string& field) {
    const absl::string_view text = absl::StripAsciiWhitespace(field);
    if (!rule_.kind.numbers()) {
      entry_.label = std::string(text);
      return absl::OkStatus();
    }
    const absl::StatusOr<nlohmann::json> value = ParseShallowJson({text.data(), text.size()});
    const absl::Status status =
        value.ok() ? FlattenNumbers(*value, rule_.kind, entry_.numbers.data()) : value.status();
    if (status.ok()) return status;
    return absl::InvalidArgumentError(
        absl::StrCat("has a label that ", status.message(), ", as dataset.label says"));
  }

  const SampleRule& rule_;
  const bool named_;  // its names are the user's
  const ManifestSink& sink_;
  size_t columns_ = 0;
  size_t path_ = 0;
  std::optional<size_t> label_;
  std::optional<size_t> mask_;
  ManifestEntry entry_;
};

}  // namespace

absl::Status ReadManifestCsv(ByteStream& text, char separator, const SampleRule& rule, bool named,
                             const ManifestSink& sink) {
  RecordReader records(text, separator);
  RecordTaker taker(rule, named, sink);
  std::vector<std::string> fields;
  while (true) {
    const absl::StatusOr<bool> found = records.Next(&fields);
    if (!text.status().ok()) return text.status();
    if (found.ok() && !*found) return absl::OkStatus();
    const absl::Status status = found.ok() ? taker.Take(fields, records.line()) : found.status();
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat(text.where(), ": line ", records.line(), ": ",
                                                      status.message()));
    }
  }
}

}  // namespace hetero::source
