#include <algorithm>

#include "runtime/storage/aws/credential_files.h"
#include "runtime/storage/aws/credential_replies.h"
#include "runtime/storage/aws/s3_replies.h"
#include "runtime/storage/http/url.h"
#include "runtime/storage/range_reply.h"
#include "tests/fuzz/fuzz.h"

// What an object store, or somebody in its place, replies: a page of a listing, an error, an
// upload's id, credentials as JSON or XML, a Content-Range; and the file with credentials.
namespace hetero::storage {
namespace {

using fuzz::Require;

// A page with these keys, as a server would write it that escapes them.
std::string Write(const ListPage& page) {
  std::string text = "<ListBucketResult><EncodingType>url</EncodingType>";
  for (const ListedKey& key : page.keys) {
    text += "<Contents><Key>" + EscapeUrl(key.key, false) + "</Key><Size>" +
            std::to_string(key.size) + "</Size></Contents>";
  }
  return text + "</ListBucketResult>";
}

void CheckPage(std::string_view text) {
  const absl::StatusOr<ListPage> page = ReadListPage(text);
  if (!page.ok()) {
    Require(absl::IsDataLoss(page.status()), "a page that is refused as something else");
    return;
  }
  const absl::StatusOr<ListPage> again = ReadListPage(Write(*page));
  Require(again.ok() && again->next.empty() && again->keys.size() == page->keys.size(),
          "a page that does not come back");
  for (size_t i = 0; i < page->keys.size(); ++i) {
    Require(page->keys[i].size >= 0 && !page->keys[i].key.empty(), "an object that is none");
    Require(page->keys[i].key == again->keys[i].key && page->keys[i].size == again->keys[i].size,
            "an object that does not come back");
  }
}

void CheckError(std::string_view text) {
  const S3Error error = ReadS3Error(text);
  Require(error.code.size() <= 100 && error.message.size() <= 300, "a text without a limit");
  Require(ReadUploadId(text).value_or("id") != "", "an upload without an id");
}

void CheckCredentials(const absl::StatusOr<AwsCredentials>& credentials) {
  if (!credentials.ok()) {
    // Only what "Code" says may be in it.
    Require(credentials.status().message().size() <= 200, "an error that repeats what it read");
    return;
  }
  Require(credentials->expires.has_value(), "credentials that never end");
  for (const std::string& part :
       {credentials->access_key_id, credentials->secret_access_key, credentials->session_token}) {
    Require(!part.empty() &&
                std::all_of(part.begin(), part.end(), [](char c) { return c > ' ' && c <= '~'; }),
            "keys that no header can carry");
  }
}

void CheckRange(std::string_view text) {
  const std::optional<ContentRange> range = ParseContentRange(text);
  if (!range.has_value()) return;
  Require(range->first >= 0 && range->first <= range->last && range->size >= -1,
          "a range that is none");
}

void CheckUrl(std::string_view text) {
  const absl::StatusOr<Url> url = ParseUrl(text);
  if (!url.ok()) return;
  const absl::StatusOr<Url> again = ParseUrl(url->origin() + url->path);
  Require(again.ok() && again->authority == url->authority && again->path == url->path,
          "a URL that does not come back");
}

}  // namespace
}  // namespace hetero::storage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero;
  fuzz::Silence();
  const std::string_view text = fuzz::TextOf(data, size);
  storage::CheckPage(text);
  storage::CheckError(text);
  storage::CheckCredentials(storage::ReadCredentialJson(text));
  storage::CheckCredentials(storage::ReadAssumedRole(text));
  storage::CheckRange(text);
  storage::CheckUrl(text);
  for (const auto& [section, settings] : storage::ReadProfiles(text)) {
    fuzz::Require(section.find('\n') == std::string::npos, "a section over several lines");
  }
  return 0;
}
