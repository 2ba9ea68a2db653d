#include "api/check_limits.h"

#include <cmath>
#include <map>
#include <regex>

#include "absl/strings/str_cat.h"
#include "api/fields.h"

namespace hetero::api {
namespace {

// "at least 1", "above 0 and below 1".
std::string Interval(const Limits& limits) {
  std::string text;
  if (std::isfinite(limits.min)) {
    absl::StrAppend(&text, limits.above_min ? "above " : "at least ", limits.min);
  }
  if (std::isfinite(limits.max)) {
    absl::StrAppend(&text, text.empty() ? "" : " and ", limits.below_max ? "below " : "at most ",
                    limits.max);
  }
  return text;
}

// What a string must look like, for a person.
std::string Meaning(const std::string& pattern) {
  static const std::map<std::string, std::string> kMeanings = {
      {kDatasetUri,
       "synthetic://, file:///path or s3://bucket/prefix (a bucket has 3 characters or more), or "
       "https://host/path of a manifest or of shards, without a query"},
      {kStorageUri, "file:///path or s3://bucket/prefix (a bucket has 3 characters or more)"},
      {kObjectUri, "file:///path or s3://bucket/key, without a \"/\" at its end"},
      {kStoragePrefix,
       "s3://bucket, s3://bucket/prefix (a bucket has 3 characters or more) or https://host/path, "
       "without a slash at its end"},
      {kEndpoint, "http://host, https://host or either with :port, and nothing behind it"},
      {kSubdomain,
       "lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"},
      {kRfc1035Label,
       "lower-case letters, digits and '-', beginning with a letter and ending with a "
       "letter or digit"},
      {kAbsolutePath, "an absolute path"},
      {kIdentifier, "letters, digits, '.', '_' and '-', beginning with a letter or digit"},
      {kTensorNames,
       "a tensor's or a module's name such as layer1.0.bn1 or fc; \"*\" stands for any characters"},
      {kViewName, "lower-case letters, digits and '_', beginning with a letter"},
      {kDomainPath, "a domain-prefixed path such as example.com/controller"},
      {kDecimal, "a decimal number such as \"2.48\""},
      {kByteSize, "a quantity from 1Mi to 99Gi such as 512Mi or 2Gi"}};
  const auto found = kMeanings.find(pattern);
  return found == kMeanings.end() ? "text matching " + pattern : found->second;
}

const std::regex& Compiled(const char* pattern) {
  thread_local std::map<std::string, std::regex> compiled;
  const auto found = compiled.find(pattern);
  if (found != compiled.end()) return found->second;
  return compiled.emplace(pattern, std::regex(pattern)).first->second;
}

}  // namespace

void CheckNumber(double value, const std::string& path, const Limits& limits, Findings& findings) {
  const bool too_small = value < limits.min || (limits.above_min && value == limits.min);
  const bool too_large = value > limits.max || (limits.below_max && value == limits.max);
  if (too_small || too_large) {
    findings.Add(path, absl::StrCat("must be ", Interval(limits), ", got ", value));
  }
}

void CheckString(const std::string& value, const std::string& path, const Limits& limits,
                 Findings& findings) {
  if (value.empty()) {
    if (limits.may_be_empty) return;
    findings.Add(path, "must not be empty; leave the field out instead");
  } else if (limits.max_length > 0 && value.size() > static_cast<size_t>(limits.max_length)) {
    findings.Add(path, absl::StrCat("has ", value.size(), " characters; at most ",
                                    limits.max_length, " are allowed"));
  } else if (limits.only != nullptr && value != limits.only) {
    findings.Add(path, absl::StrCat("must be ", limits.only, ", got '", value, "'"));
  } else if (limits.pattern != nullptr && !std::regex_match(value, Compiled(limits.pattern))) {
    findings.Add(path, absl::StrCat("must be ", Meaning(limits.pattern), ", got '", value, "'"));
  }
}

void CheckCount(size_t count, const std::string& path, const Limits& limits, Findings& findings) {
  if (count < static_cast<size_t>(limits.min_items)) {
    findings.Add(
        path, absl::StrCat("has ", count, " entries; at least ", limits.min_items, " are needed"));
  } else if (limits.max_items > 0 && count > static_cast<size_t>(limits.max_items)) {
    findings.Add(
        path, absl::StrCat("has ", count, " entries; at most ", limits.max_items, " are allowed"));
  }
}

}  // namespace hetero::api
