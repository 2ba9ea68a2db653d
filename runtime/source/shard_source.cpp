#include "runtime/source/shard_source.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "runtime/source/in_parallel.h"

namespace hetero::source {
namespace {

constexpr size_t kMaxNamedFiles = 1'000'000;
constexpr size_t kNamesInMessages = 5;

struct NumberRange {
  uint64_t first = 0;
  uint64_t last = 0;
  size_t digits = 0;  // of each number, filled up with zeros; 0: as many as it has
};

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Of what stands between braces.
absl::StatusOr<NumberRange> ParseRange(const std::string& uri, std::string_view text) {
  const size_t dots = text.find("..");
  const std::string_view first = text.substr(0, dots);
  const std::string_view last = dots == std::string_view::npos ? "" : text.substr(dots + 2);
  const auto padded = [](std::string_view number) { return number.size() > 1 && number[0] == '0'; };
  NumberRange range;
  if (IsNumber(first) && IsNumber(last) &&
      (first.size() == last.size() || (!padded(first) && !padded(last)))) {
    range.digits = first.size() == last.size() ? first.size() : 0;
    if (absl::SimpleAtoi(absl::string_view(first.data(), first.size()), &range.first) &&
        absl::SimpleAtoi(absl::string_view(last.data(), last.size()), &range.last) &&
        range.first <= range.last) {
      return range;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "dataset.uri \"", uri, "\": {", std::string(text),
      "} is no range of numbers; write {000000..000127}, from the lower to the higher, "
      "both with as many digits"));
}

absl::Status TooMany(const std::string& uri) {
  return absl::InvalidArgumentError(absl::StrCat("dataset.uri \"", uri, "\": names more than ",
                                                 kMaxNamedFiles, " files; name a folder"));
}

// All names that `pattern` stands for.
absl::StatusOr<std::vector<std::string>> Expand(const std::string& uri, std::string_view pattern) {
  std::vector<std::string> names = {""};
  while (!pattern.empty()) {
    const size_t open = pattern.find('{');
    for (std::string& name : names) name += pattern.substr(0, open);
    if (open == std::string_view::npos) break;
    const size_t close = pattern.find('}', open);
    const std::string_view text =
        pattern.substr(open + 1, close == std::string_view::npos ? close : close - open - 1);
    if (close == std::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("dataset.uri \"", uri, "\": \"{\" without \"}\""));
    }
    HETERO_ASSIGN_OR_RETURN(const NumberRange range, ParseRange(uri, text));
    const uint64_t count = range.last - range.first + 1;
    if (count > kMaxNamedFiles / names.size()) return TooMany(uri);
    std::vector<std::string> longer;
    longer.reserve(names.size() * count);
    for (const std::string& name : names) {
      for (uint64_t number = range.first; number <= range.last; ++number) {
        std::string digits = std::to_string(number);
        if (digits.size() < range.digits) digits.insert(0, range.digits - digits.size(), '0');
        longer.push_back(name + digits);
      }
    }
    names = std::move(longer);
    pattern.remove_prefix(close + 1);
  }
  return names;
}

bool IsHiddenPath(std::string_view name) {
  const auto hides = [](char c) { return c == '.' || c == '_'; };
  if (hides(name.front())) return true;
  for (size_t i = 1; i < name.size(); ++i) {
    if (name[i - 1] == '/' && hides(name[i])) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<storage::Object>> ShardSource::List() const {
  if (listed != nullptr) return *listed;
  return store->List("");
}

absl::StatusOr<NamedFiles> ExpandRanges(const std::string& uri) {
  const size_t brace = uri.find('{');
  const size_t slash = uri.rfind('/');
  if (brace == std::string::npos) return NamedFiles{uri, {}};
  if (slash == std::string::npos || slash > brace) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset.uri \"", uri, "\": a range stands in the last part, the files' names; name a ",
        "folder for files of several folders"));
  }
  HETERO_ASSIGN_OR_RETURN(std::vector<std::string> names,
                          Expand(uri, std::string_view(uri).substr(slash + 1)));
  return NamedFiles{uri.substr(0, slash), std::move(names)};
}

std::optional<NamedFiles> AsOneFile(const std::string& uri) {
  const size_t scheme = uri.find("://");
  const size_t slash = uri.rfind('/');
  // Behind the bucket's name, or the root.
  if (scheme == std::string::npos || slash < scheme + 3) return std::nullopt;
  if (uri.find('{') != std::string::npos) return std::nullopt;
  constexpr std::string_view kEndings[] = {".tar",      ".tar.gz", ".tgz",
                                           ".tfrecord", ".rec",    ".parquet"};
  const bool ends = std::any_of(std::begin(kEndings), std::end(kEndings),
                                [&](std::string_view ending) { return uri.ends_with(ending); });
  if (!ends) return std::nullopt;
  return NamedFiles{uri.substr(0, slash), {uri.substr(slash + 1)}};
}

bool NamesFiles(const std::string& uri) {
  const size_t slash = uri.rfind('/');
  const size_t last = slash == std::string::npos ? 0 : slash;
  return uri.find('{', last) != std::string::npos || AsOneFile(uri).has_value();
}

absl::StatusOr<std::vector<storage::Object>> FindShards(const ShardSource& source,
                                                        IsShardName is_shard,
                                                        std::string_view looked_for) {
  if (!source.names.empty()) return HeadAll(*source.store, source.names);
  HETERO_ASSIGN_OR_RETURN(std::vector<storage::Object> all, source.List());
  std::vector<storage::Object> shards;
  std::vector<std::string> others;
  for (storage::Object& object : all) {
    if (!IsHiddenPath(object.name) && is_shard(object.name)) {
      shards.push_back(std::move(object));
    } else if (others.size() <= kNamesInMessages) {
      others.push_back(std::move(object.name));
    }
  }
  if (!shards.empty()) return shards;
  return absl::NotFoundError(absl::StrCat(
      source.store->uri(), ": looked for ", absl::string_view(looked_for.data(), looked_for.size()),
      "; found ", SummaryOf(others), "; correct dataset.uri or dataset.format"));
}

absl::StatusOr<std::vector<storage::Object>> HeadAll(const storage::Store& store,
                                                     const std::vector<std::string>& names) {
  std::vector<storage::Object> objects(names.size());
  HETERO_RETURN_IF_ERROR(InParallel(names.size(), [&](size_t i) -> absl::Status {
    HETERO_ASSIGN_OR_RETURN(objects[i], store.Head(names[i]));
    return absl::OkStatus();
  }));
  return objects;
}

std::string SummaryOf(const std::vector<std::string>& names) {
  if (names.empty()) return "nothing";
  const size_t shown = std::min(names.size(), kNamesInMessages);
  return absl::StrCat(
      absl::StrJoin(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown < names.size() ? absl::StrCat(" and ", names.size() - shown, " more") : "");
}

}  // namespace hetero::source
