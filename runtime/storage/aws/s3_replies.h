#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// What S3 replies with, as far as it is XML.
namespace hetero::storage {

struct ListedKey {
  std::string key;
  int64_t size = 0;
  std::string etag;  // without its quotes; empty: the server has none
};

// Of ListObjectsV2.
struct ListPage {
  std::vector<ListedKey> keys;
  std::string next;  // the token that the next page is asked for with; empty: this is the last
};
// kDataLoss: it is no such page, or a key, a size or a token in it is none.
absl::StatusOr<ListPage> ReadListPage(std::string_view body);

// "NoSuchKey", "The specified key does not exist.". Texts are cut; both are empty where the body is
// no error of S3's: of HEAD there is no body, and of what stands in between anything may come.
struct S3Error {
  std::string code;
  std::string message;
  std::string region;  // where the bucket is, when it was asked for elsewhere
};
S3Error ReadS3Error(std::string_view body);

// Of CreateMultipartUpload: the upload's id.
absl::StatusOr<std::string> ReadUploadId(std::string_view body);

// "\"abc\"" as "abc".
std::string WithoutQuotes(std::string_view etag);

}  // namespace hetero::storage
