#include "runtime/storage/object_uri.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "runtime/storage/http/url.h"
#include "runtime/storage/object_name.h"

namespace hetero::storage {
namespace {

constexpr size_t kMostKeyBytes = 1024;  // of S3
constexpr size_t kMostShownBytes = 200;

absl::Status NoObject(const std::string& root, std::string_view name, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("\"", base::ToUtf8(name, kMostShownBytes),
                                                 "\" is no name of an object below ", root, ": ",
                                                 why));
}

absl::StatusOr<ObjectUri> ParseUrlOfObject(std::string_view uri) {
  HETERO_ASSIGN_OR_RETURN(const Url url, ParseUrl(uri));
  ObjectUri object{.root = url.origin()};
  const std::string path = url.path.empty() ? "" : url.path.substr(1);
  // A plus is a space in forms alone.
  const absl::StatusOr<std::string> name = UnescapeForm(absl::StrReplaceAll(path, {{"+", "%2B"}}));
  if (!name.ok()) return NoObject(object.root, path, name.status().message());
  if (std::count(name->begin(), name->end(), '/') != std::count(path.begin(), path.end(), '/')) {
    return NoObject(object.root, path, "a \"/\" inside a name (%2F) is not told from one between");
  }
  object.name = *name;
  return object;
}

}  // namespace

absl::StatusOr<ObjectUri> SplitUri(std::string_view uri) {
  absl::string_view rest(uri.data(), uri.size());
  if (absl::ConsumePrefix(&rest, "file:///")) return ObjectUri{"file:///", std::string(rest)};
  if (absl::ConsumePrefix(&rest, "s3://")) {
    const size_t slash = rest.find('/');
    const absl::string_view name = slash == rest.npos ? "" : rest.substr(slash + 1);
    return ObjectUri{absl::StrCat("s3://", rest.substr(0, slash)), std::string(name)};
  }
  if (absl::StartsWith(rest, "https://") || absl::StartsWith(rest, "http://")) {
    return ParseUrlOfObject(uri);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", base::ToUtf8(uri, kMostShownBytes),
      "\" is at no store that is known; write file:///path, s3://bucket/key or https://host/path"));
}

absl::StatusOr<ObjectUri> ParseObjectUri(std::string_view uri) {
  HETERO_ASSIGN_OR_RETURN(ObjectUri object, SplitUri(uri));
  HETERO_RETURN_IF_ERROR(CheckObjectName(object.root, object.name));
  return object;
}

absl::Status CheckObjectName(const std::string& root, std::string_view name) {
  if (!absl::StartsWith(root, "s3://")) return CheckName(root, name);
  if (name.empty()) return NoObject(root, name, "it is empty");
  if (name.size() > kMostKeyBytes) return NoObject(root, name, "a key has 1024 bytes at most");
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(name.data(), name.size()), '/')) {
    if (part == "." || part == "..") {
      return NoObject(root, name, "\".\" and \"..\" could leave the root");
    }
  }
  return absl::OkStatus();
}

}  // namespace hetero::storage
