#include "runtime/storage/aws/s3_replies.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "runtime/storage/aws/xml.h"
#include "runtime/storage/http/url.h"

namespace hetero::storage {
namespace {

absl::Status NoPage(absl::string_view why) {
  return absl::DataLossError(absl::StrCat("the reply is no list of objects: ", why));
}

absl::StatusOr<ListedKey> ReadKey(const XmlElement& contents, bool escaped) {
  ListedKey key;
  const XmlElement* name = contents.Find("Key");
  if (name == nullptr || name->text.empty()) return NoPage("an object has no key");
  key.key = name->text;
  if (escaped) {
    absl::StatusOr<std::string> plain = UnescapeForm(name->text);
    if (!plain.ok()) return NoPage(absl::StrCat("a key has ", plain.status().message()));
    key.key = *std::move(plain);
  }
  if (!absl::SimpleAtoi(contents.TextOf("Size"), &key.size) || key.size < 0) {
    return NoPage("an object has no size");
  }
  key.etag = WithoutQuotes(contents.TextOf("ETag"));
  return key;
}

}  // namespace

std::string WithoutQuotes(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return std::string(etag);
}

absl::StatusOr<ListPage> ReadListPage(std::string_view body) {
  absl::StatusOr<XmlElement> root = ParseXml(body);
  if (!root.ok()) return NoPage(root.status().message());
  if (root->name != "ListBucketResult") return NoPage("it has another root");
  // Asked for, because XML has no way to write some keys; some servers do not do it.
  const bool escaped = root->TextOf("EncodingType") == "url";
  ListPage page;
  for (const XmlElement& child : root->children) {
    if (child.name != "Contents") continue;
    HETERO_ASSIGN_OR_RETURN(ListedKey key, ReadKey(child, escaped));
    page.keys.push_back(std::move(key));
  }
  const std::string truncated = root->TextOf("IsTruncated");
  if (truncated != "true" && truncated != "false" && !truncated.empty()) {
    return NoPage("it does not say whether there is more");
  }
  if (truncated == "true") {
    page.next = root->TextOf("NextContinuationToken");
    if (page.next.empty()) return NoPage("there is more, but no token to ask for it with");
  }
  return page;
}

S3Error ReadS3Error(std::string_view body) {
  if (body.empty()) return {};
  const absl::StatusOr<XmlElement> root = ParseXml(body);
  if (!root.ok()) return {};
  // STS puts it one level down.
  const XmlElement* error = root->name == "Error" ? &*root : root->Find("Error");
  if (error == nullptr) return {};
  return {base::ToUtf8(error->TextOf("Code"), 100), base::ToUtf8(error->TextOf("Message"), 300),
          base::ToUtf8(error->TextOf("Region"), 100)};
}

absl::StatusOr<std::string> ReadUploadId(std::string_view body) {
  const absl::StatusOr<XmlElement> root = ParseXml(body);
  if (root.ok() && root->name == "InitiateMultipartUploadResult") {
    if (std::string id = root->TextOf("UploadId"); !id.empty()) return id;
  }
  return absl::DataLossError("the reply has no id of an upload");
}

}  // namespace hetero::storage
