#include "runtime/storage/object_name.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/storage/store.h"

namespace hetero::storage {
namespace {

absl::Status Refused(std::string_view uri, std::string_view name, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", absl::Utf8SafeCHexEscape(absl::string_view(name.data(), name.size()).substr(0, 200)),
      "\" is no name of an object below ", std::string(uri), ": ", std::string(why)));
}

bool IsWay(std::string_view part) { return part == "." || part == ".."; }

// Of all parts but the last one, which is returned.
absl::Status CheckParts(std::string_view uri, std::string_view name, std::string_view* last) {
  if (name.size() > kMostNameBytes) return Refused(uri, name, "it is too long");
  if (name.find('\0') != std::string_view::npos) return Refused(uri, name, "it has a zero byte");
  std::string_view rest = name;
  for (size_t slash; (slash = rest.find('/')) != std::string_view::npos;) {
    const std::string_view part = rest.substr(0, slash);
    if (part.empty()) return Refused(uri, name, "a part of it is empty");
    if (IsWay(part)) return Refused(uri, name, "\".\" and \"..\" could leave the root");
    rest.remove_prefix(slash + 1);
  }
  *last = rest;
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckName(std::string_view uri, std::string_view name) {
  std::string_view last;
  HETERO_RETURN_IF_ERROR(CheckParts(uri, name, &last));
  if (last.empty()) return Refused(uri, name, "it ends without a name");
  if (IsWay(last)) return Refused(uri, name, "\".\" and \"..\" could leave the root");
  return absl::OkStatus();
}

absl::Status CheckPrefix(std::string_view uri, std::string_view prefix) {
  std::string_view last;  // "..data" begins with ".."
  return CheckParts(uri, prefix, &last);
}

std::string RangeText(int64_t offset, int64_t length) {
  if (length == 0) return "no bytes";
  return absl::StrCat("bytes ", offset, " to ", offset + length - 1);
}

absl::Status CheckRange(std::string_view uri, const Object& object, int64_t offset, size_t length) {
  if (offset < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", std::string(uri), "/", object.name, " from byte ", offset));
  }
  if (offset > object.size || static_cast<int64_t>(length) > object.size - offset) {
    return absl::OutOfRangeError(absl::StrCat("cannot read ", std::string(uri), "/", object.name,
                                              ", ", RangeText(offset, length), ": it has ",
                                              object.size, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace hetero::storage
