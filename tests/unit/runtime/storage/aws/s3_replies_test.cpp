#include "runtime/storage/aws/s3_replies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/storage/aws/credential_replies.h"
#include "runtime/storage/aws/xml.h"

namespace hetero::storage {
namespace {

using ::testing::HasSubstr;

TEST(XmlTest, ReadsElementsWithTheirText) {
  const auto root = ParseXml(
      "<?xml version=\"1.0\"?>\n<s:A xmlns:s='http://x'><B>1 &amp; 2</B><!-- c --><B/><C><D>"
      "<![CDATA[<x>]]></D></C></s:A>");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(root->name, "A");
  ASSERT_EQ(root->children.size(), 3);
  EXPECT_EQ(root->TextOf("B"), "1 & 2");
  EXPECT_EQ(root->Find("C")->TextOf("D"), "<x>");
  EXPECT_EQ(root->Find("E"), nullptr);
}

TEST(XmlTest, RefusesWhatGrowsOrIsNotWellFormed) {
  std::string deep, wide = "<a>";
  for (int i = 0; i < 17; ++i) deep += "<a>";
  for (int i = 0; i < 17; ++i) deep += "</a>";
  for (int i = 0; i < 100'000; ++i) wide += "<b/>";
  for (const std::string& text :
       {std::string(""), std::string("<a>"), std::string("<a></b>"), std::string("<a/><b/>"),
        std::string("<a>\xff</a>"), std::string("<a>\0</a>", 8), std::string("<a>&x;</a>"),
        std::string("<!DOCTYPE a [<!ENTITY x 'xx'>]><a>&x;</a>"), std::string("<!DOCTYPE a><a/>"),
        deep, wide + "</a>"}) {
    const auto root = ParseXml(text);
    EXPECT_TRUE(absl::IsDataLoss(root.status())) << text.substr(0, 50);
    EXPECT_THAT(std::string(root.status().message()), HasSubstr("line 1"));
  }
}

// As S3 documents it.
constexpr char kPage[] = R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>bucket</Name><Prefix/><KeyCount>2</KeyCount><MaxKeys>2</MaxKeys>
  <IsTruncated>true</IsTruncated><NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken>
  <Contents><Key>a &amp; b+%20.jpg</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>
    <ETag>&quot;fba9dede5f27731c9771645a39863328&quot;</ETag><Size>434234</Size><StorageClass>STANDARD</StorageClass></Contents>
  <Contents><Key>c</Key><Size>0</Size></Contents>
</ListBucketResult>)";

TEST(ListPageTest, ReadsKeysSizesVersionsAndTheToken) {
  const auto page = ReadListPage(kPage);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->keys.size(), 2);
  EXPECT_EQ(page->keys[0].key, "a & b+%20.jpg");
  EXPECT_EQ(page->keys[0].size, 434234);
  EXPECT_EQ(page->keys[0].etag, "fba9dede5f27731c9771645a39863328");
  EXPECT_EQ(page->keys[1].etag, "");
  EXPECT_EQ(page->next, "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=");
}

TEST(ListPageTest, EscapedKeysAreUnescapedWhereTheServerSaysSo) {
  const std::string page =
      "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>"
      "<Contents><Key>a+b%2Bc%0A/%E1%88%B4</Key><Size>1</Size></Contents></ListBucketResult>";
  EXPECT_EQ(ReadListPage(page)->keys[0].key, "a b+c\n/\u1234");
  EXPECT_EQ(ReadListPage(page)->next, "");
}

TEST(ListPageTest, RefusesWhatIsNone) {
  for (const char* body :
       {"", "{}", "<Error><Code>x</Code></Error>", "<ListBucketResult>",
        "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>1x</Size></Contents></ListBucketResult>",
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%</Key><Size>1</Size>"
        "</Contents></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><IsTruncated>maybe</IsTruncated></ListBucketResult>"}) {
    EXPECT_TRUE(absl::IsDataLoss(ReadListPage(body).status())) << body;
  }
}

TEST(S3ErrorTest, ReadsCodesOfS3AndSts) {
  const S3Error error = ReadS3Error(
      "<?xml version=\"1.0\"?><Error><Code>AuthorizationHeaderMalformed</Code><Message>the region "
      "is wrong</Message><Region>eu-west-1</Region><AWSAccessKeyId>AKID</AWSAccessKeyId></Error>");
  EXPECT_EQ(error.code, "AuthorizationHeaderMalformed");
  EXPECT_EQ(error.message, "the region is wrong");
  EXPECT_EQ(error.region, "eu-west-1");
  EXPECT_EQ(ReadS3Error("<ErrorResponse><Error><Code>ExpiredTokenException</Code></Error>"
                        "</ErrorResponse>")
                .code,
            "ExpiredTokenException");
  EXPECT_EQ(ReadS3Error("<html>Bad gateway").code, "");
  EXPECT_EQ(ReadS3Error("<Error><Code>" + std::string(1000, 'x') + "</Code></Error>").code.size(),
            100);
}

TEST(CredentialJsonTest, ReadsWhatTheInstanceMetadataServiceGives) {
  const auto credentials = ReadCredentialJson(R"({"Code": "Success",
    "LastUpdated": "2012-04-26T16:39:16Z", "Type": "AWS-HMAC",
    "AccessKeyId": "ASIAIOSFODNN7EXAMPLE", "SecretAccessKey": "wJalr/K7MDENG",
    "Token": "token", "Expiration": "2017-05-17T15:09:54Z"})");
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(credentials->access_key_id, "ASIAIOSFODNN7EXAMPLE");
  EXPECT_EQ(credentials->secret_access_key, "wJalr/K7MDENG");
  EXPECT_EQ(credentials->session_token, "token");
  EXPECT_EQ(std::chrono::system_clock::to_time_t(*credentials->expires), 1495033794);
}

TEST(CredentialJsonTest, RefusesWhatIsNoneWithoutRepeatingIt) {
  for (const char* body :
       {"", "SECRET", "[\"SECRET\"]", R"({"SecretAccessKey": "SECRET"})",
        R"({"AccessKeyId": "A", "SecretAccessKey": "SECRET", "Token": "T"})",
        R"({"AccessKeyId": "A", "SecretAccessKey": "SECRET", "Token": "T", "Expiration": "soon"})",
        R"({"AccessKeyId": "A", "SecretAccessKey": "SECRET", "Token": "T",
            "Expiration": "infinite-future"})",
        R"({"AccessKeyId": "A\r\n", "SecretAccessKey": "SECRET", "Token": "T",
            "Expiration": "2017-05-17T15:09:54Z"})",
        R"({"AccessKeyId": "A", "SecretAccessKey": ["SECRET"], "Token": "T",
            "Expiration": "2017-05-17T15:09:54Z"})"}) {
    const auto credentials = ReadCredentialJson(body);
    EXPECT_TRUE(absl::IsDataLoss(credentials.status())) << body;
    EXPECT_THAT(std::string(credentials.status().message()), Not(HasSubstr("SECRET")));
  }
  EXPECT_TRUE(absl::IsPermissionDenied(
      ReadCredentialJson(R"({"Code": "AssumeRoleUnauthorizedAccess"})").status()));
}

}  // namespace
}  // namespace hetero::storage
