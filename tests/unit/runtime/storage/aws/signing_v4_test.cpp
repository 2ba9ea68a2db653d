#include "runtime/storage/aws/signing_v4.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace hetero::storage {
namespace {

base::WallTime At(const char* time) {
  absl::Time parsed;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, time, &parsed, &error)) << error;
  return std::chrono::time_point_cast<base::WallTime::duration>(absl::ToChronoTime(parsed));
}

std::string Value(const HttpHeaders& headers, const std::string& name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

struct Vector {
  std::string name;
  std::string method;
  std::string path;  // not escaped
  Query query;
  HttpHeaders headers;  // beside Host and the date
  std::string body;
  std::string signed_headers;
  std::string signature;
};

// AWS's test suite for Signature Version 4, as its SDKs carry it. Those of its cases that normalize
// a path are not S3's.
const std::vector<Vector>& Suite() {
  static const std::string unreserved =
      "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  static const auto* const suite = new std::vector<Vector>{
      {"get-vanilla",
       "GET",
       "/",
       {},
       {},
       "",
       "host;x-amz-date",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"get-vanilla-query-order-key-case",
       "GET",
       "/",
       {{"Param2", "value2"}, {"Param1", "value1"}},
       {},
       "",
       "host;x-amz-date",
       "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
      {"get-vanilla-query-order-encoded",
       "GET",
       "/",
       {{"Param-3", "Value3"}, {"Param", "Value2"}, {"\u1234", "Value1"}},
       {},
       "",
       "host;x-amz-date",
       "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"},
      {"get-vanilla-empty-query-key",
       "GET",
       "/",
       {{"Param1", "value1"}},
       {},
       "",
       "host;x-amz-date",
       "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
      {"get-vanilla-query-unreserved",
       "GET",
       "/",
       {{unreserved, unreserved}},
       {},
       "",
       "host;x-amz-date",
       "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
      {"get-vanilla-utf8-query",
       "GET",
       "/",
       {{"\u1234", "bar"}},
       {},
       "",
       "host;x-amz-date",
       "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
      {"get-utf8",
       "GET",
       "/\u1234",
       {},
       {},
       "",
       "host;x-amz-date",
       "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
      {"get-unreserved",
       "GET",
       "/" + unreserved,
       {},
       {},
       "",
       "host;x-amz-date",
       "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
      {"get-space-unnormalized",
       "GET",
       "/example space/",
       {},
       {},
       "",
       "host;x-amz-date",
       "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
      {"get-slashes-unnormalized",
       "GET",
       "//example//",
       {},
       {},
       "",
       "host;x-amz-date",
       "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5"},
      {"get-relative-relative-unnormalized",
       "GET",
       "/example1/example2/../..",
       {},
       {},
       "",
       "host;x-amz-date",
       "dc33e0856fd4baca4d7aa2146c38958283844764f38c74252a333df5e613003b"},
      {"get-header-key-duplicate",
       "GET",
       "/",
       {},
       {{"My-Header1", "value2"}, {"My-Header1", "value2"}, {"My-Header1", "value1"}},
       "",
       "host;my-header1;x-amz-date",
       "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
      {"get-header-value-order",
       "GET",
       "/",
       {},
       {{"My-Header1", "value4"},
        {"My-Header1", "value1"},
        {"My-Header1", "value3"},
        {"My-Header1", "value2"}},
       "",
       "host;my-header1;x-amz-date",
       "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"},
      {"get-header-value-trim",
       "GET",
       "/",
       {},
       {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}},
       "",
       "host;my-header1;my-header2;x-amz-date",
       "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
      {"post-vanilla",
       "POST",
       "/",
       {},
       {},
       "",
       "host;x-amz-date",
       "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
      {"post-header-key-sort",
       "POST",
       "/",
       {},
       {{"My-Header1", "value1"}},
       "",
       "host;my-header1;x-amz-date",
       "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
      {"post-header-value-case",
       "POST",
       "/",
       {},
       {{"My-Header1", "VALUE1"}},
       "",
       "host;my-header1;x-amz-date",
       "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},
      {"post-vanilla-query",
       "POST",
       "/",
       {{"Param1", "value1"}},
       {},
       "",
       "host;x-amz-date",
       "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
      {"post-vanilla-query-nonunreserved",
       "POST",
       "/",
       {{"@#$%^", ""}, {"+", "/,?><`\";:\\|][{}"}},
       {},
       "",
       "host;x-amz-date",
       "66c82657c86e26fb25238d0e69f011edc4c6df5ae71119d7cb98ed9b87393c1e"},
      {"post-vanilla-query-space",
       "POST",
       "/",
       {{"p", ""}},
       {},
       "",
       "host;x-amz-date",
       "e71688addb58a26418614085fb730ba3faa623b461c17f48f2fbdb9361b94a9b"},
      {"post-x-www-form-urlencoded",
       "POST",
       "/",
       {},
       {{"Content-Type", "application/x-www-form-urlencoded"}},
       "Param1=value1",
       "content-type;host;x-amz-date",
       "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
  };
  return *suite;
}

TEST(SigningV4Test, SignsTheRequestsOfAwsTestSuite) {
  for (const Vector& vector : Suite()) {
    SCOPED_TRACE(vector.name);
    HttpHeaders headers = vector.headers;
    headers.emplace_back("Host", "example.amazonaws.com");
    SignV4({.method = vector.method,
            .path = EscapeUrl(vector.path, /*keep_slashes=*/true),
            .query = vector.query,
            .payload_hash = Sha256Hex(vector.body)},
           {.access_key_id = "AKIDEXAMPLE",
            .secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"},
           {.region = "us-east-1", .service = "service"}, At("2015-08-30T12:36:00Z"), &headers);
    EXPECT_EQ(Value(headers, "authorization"),
              "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
              "SignedHeaders=" +
                  vector.signed_headers + ", Signature=" + vector.signature);
  }
}

TEST(SigningV4Test, SignsATokenOfTemporaryCredentials) {
  HttpHeaders headers = {{"Host", "example.amazonaws.com"}};
  SignV4({.method = "POST", .path = "/", .payload_hash = Sha256Hex("")},
         {.access_key_id = "AKIDEXAMPLE",
          .secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
          .session_token =
              "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMi"
              "cRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZamp"
              "KsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD"
              "0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLx"
              "BA=="},
         {.region = "us-east-1", .service = "service"}, At("2015-08-30T12:36:00Z"), &headers);
  EXPECT_EQ(Value(headers, "authorization"),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
            "SignedHeaders=host;x-amz-date;x-amz-security-token, "
            "Signature=85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead");
}

// The examples of S3's documentation, "Authenticating requests: using the Authorization header".
TEST(SigningV4Test, SignsTheExamplesOfS3sDocumentation) {
  const std::vector<Vector> examples = {
      {"GET Object",
       "GET",
       "/test.txt",
       {},
       {{"Range", "bytes=0-9"}},
       "",
       "host;range;x-amz-content-sha256;x-amz-date",
       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
      {"PUT Object",
       "PUT",
       "/test$file.text",
       {},
       {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
       "Welcome to Amazon S3.",
       "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
       "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
      {"GET Bucket Lifecycle",
       "GET",
       "/",
       {{"lifecycle", ""}},
       {},
       "",
       "host;x-amz-content-sha256;x-amz-date",
       "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
      {"GET Bucket (List Objects)",
       "GET",
       "/",
       {{"prefix", "J"}, {"max-keys", "2"}},
       {},
       "",
       "host;x-amz-content-sha256;x-amz-date",
       "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
  };
  for (const Vector& example : examples) {
    SCOPED_TRACE(example.name);
    HttpHeaders headers = example.headers;
    headers.emplace_back("host", "examplebucket.s3.amazonaws.com");
    headers.emplace_back("x-amz-content-sha256", Sha256Hex(example.body));
    SignV4({.method = example.method,
            .path = EscapeUrl(example.path, /*keep_slashes=*/true),
            .query = example.query,
            .payload_hash = Sha256Hex(example.body)},
           {.access_key_id = "AKIAIOSFODNN7EXAMPLE",
            .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
           {.region = "us-east-1", .service = "s3"}, At("2013-05-24T00:00:00Z"), &headers);
    EXPECT_EQ(
        Value(headers, "authorization"),
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders=" +
            example.signed_headers + ", Signature=" + example.signature);
  }
}

}  // namespace
}  // namespace hetero::storage
