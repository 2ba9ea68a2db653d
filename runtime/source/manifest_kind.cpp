#include "runtime/source/manifest_kind.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "runtime/source/picture_listing.h"

namespace hetero::source {
namespace {

constexpr size_t kBytesLookedAt = 64 << 10;
constexpr int kLinesLookedAt = 2;  // a header and a sample

absl::string_view Beginning(ByteStream& text) {
  const std::string_view ahead = text.Ahead().substr(0, kBytesLookedAt);
  return {ahead.data(), ahead.size()};
}

bool IsTableName(const std::string& name) {
  return absl::EndsWithIgnoreCase(name, ".csv") || absl::EndsWithIgnoreCase(name, ".tsv");
}

// Whether a field of the line is a picture's name, if only roughly.
bool NamesPicture(absl::string_view line) {
  for (absl::string_view field : absl::StrSplit(line, absl::ByAnyChar(",\t"))) {
    field = absl::StripAsciiWhitespace(field);
    if (absl::EndsWith(field, "\"")) field.remove_suffix(1);
    if (IsPictureName({field.data(), field.size()})) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<ManifestKind> FindKind(ByteStream& text, const std::string& name) {
  ManifestKind kind;
  if (!IsTableName(name)) {
    while (text.Peek() != ByteStream::kEnd &&
           absl::ascii_isspace(static_cast<unsigned char>(text.Peek()))) {
      text.Next();
    }
    if (text.Peek() == '[') kind.way = ManifestKind::kList;
    if (text.Peek() == '{') kind.way = ManifestKind::kLines;
  }
  const absl::string_view ahead = Beginning(text);
  if (!text.status().ok()) return text.status();
  const absl::string_view line = ahead.substr(0, ahead.find('\n'));
  const bool has_tab = absl::StrContains(line, "\t");
  if (has_tab && (absl::EndsWithIgnoreCase(name, ".tsv") || !absl::StrContains(line, ","))) {
    kind.separator = '\t';
  }
  return kind;
}

bool IsManifestName(const std::string& name) {
  static constexpr const char* kEndings[] = {".manifest", ".json", ".jsonl", ".ndjson"};
  return IsTableName(name) ||
         std::any_of(std::begin(kEndings), std::end(kEndings), [&name](const char* ending) {
           return absl::EndsWithIgnoreCase(name, ending);
         });
}

absl::StatusOr<bool> BeginsManifest(ByteStream& text, const std::string& name,
                                    const api::SampleFields& fields) {
  HETERO_ASSIGN_OR_RETURN(const ManifestKind kind, FindKind(text, name));
  const absl::string_view ahead = Beginning(text);
  if (absl::StrContains(ahead, absl::string_view("\0", 1))) return false;
  absl::string_view line = ahead.substr(0, ahead.find('\n'));
  switch (kind.way) {
    case ManifestKind::kList: {
      const size_t first = ahead.find_first_not_of(" \t\r\n", 1);
      return first != absl::string_view::npos &&
             (ahead[first] == '"' ||
              (ahead[first] == '{' && absl::StrContains(ahead, "\"prefix\"")));
    }
    case ManifestKind::kLines:
      return absl::StrContains(line, "-ref\"") ||
             (!fields.image.empty() &&
              absl::StrContains(line, absl::StrCat("\"", fields.image, "\"")));
    case ManifestKind::kTable:
      break;
  }
  size_t begin = 0;
  for (int i = 0; i < kLinesLookedAt && begin < ahead.size(); ++i) {
    line = ahead.substr(begin, ahead.find('\n', begin) - begin);
    if (NamesPicture(line)) return true;
    begin += line.size() + 1;
  }
  return false;
}

}  // namespace hetero::source
