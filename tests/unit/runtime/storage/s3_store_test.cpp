#include "runtime/storage/s3_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/storage/aws/credential_chain.h"
#include "tests/unit/runtime/storage/jumping_clock.h"
#include "tests/unit/runtime/storage/scripted_client.h"

namespace hetero::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Gives other keys each time.
class CountedCredentials : public CredentialSource {
 public:
  std::string name() const override { return "the test"; }
  absl::StatusOr<AwsCredentials> Fetch() override {
    return AwsCredentials{.access_key_id = absl::StrCat("KEY", ++count_),
                          .secret_access_key = "secret",
                          .session_token = absl::StrCat("token", count_)};
  }

 private:
  int count_ = 0;
};

std::string Page(const std::vector<std::string>& keys, const std::string& next) {
  std::string page =
      absl::StrCat("<ListBucketResult><IsTruncated>", next.empty() ? "false" : "true",
                   "</IsTruncated><NextContinuationToken>", next, "</NextContinuationToken>");
  for (const std::string& key : keys) {
    absl::StrAppend(&page, "<Contents><Key>", key, "</Key><Size>", key.size(), "</Size><ETag>\"e-",
                    key, "\"</ETag></Contents>");
  }
  return page + "</ListBucketResult>";
}

std::string Error(const std::string& code) {
  return absl::StrCat("<Error><Code>", code, "</Code><Message>because</Message></Error>");
}

class S3StoreTest : public ::testing::Test {
 protected:
  S3StoreTest() {
    options_.clock = &clock_;
    options_.environment = [](const std::string&) { return ""; };
  }
  // Replies come in order; the last one again and again.
  WritableStore& Open(std::deque<HttpResponse> replies, const std::string& uri = "s3://bucket/p") {
    auto http = std::make_unique<ScriptedClient>([replies](const HttpRequest&) mutable {
      HttpResponse reply = replies.front();
      if (replies.size() > 1) replies.pop_front();
      return reply;
    });
    http_ = http.get();
    store_ = *OpenS3Store(
        uri, options_, std::move(http),
        std::make_shared<RenewedCredentials>(clock_, std::make_unique<CountedCredentials>()));
    return *store_;
  }
  std::string Url(size_t request) const { return http_->requests.at(request).url; }

  JumpingClock clock_;
  StoreOptions options_;
  ScriptedClient* http_ = nullptr;
  std::unique_ptr<WritableStore> store_;
};

TEST_F(S3StoreTest, BucketsHaveTheirAddress) {
  const auto url = [&](const std::string& uri) {
    static_cast<void>(Open({{.status = 404}}, uri).Head("k"));
    EXPECT_EQ(HeaderOf(http_->requests[0], "host"), Url(0).substr(8, Url(0).find('/', 8) - 8));
    return Url(0);
  };
  options_.region = "eu-west-1";
  EXPECT_EQ(url("s3://bucket/p"), "https://bucket.s3.eu-west-1.amazonaws.com/p/k");
  EXPECT_EQ(url("s3://bucket"), "https://bucket.s3.eu-west-1.amazonaws.com/k");
  EXPECT_EQ(url("s3://with.dots/p/"), "https://s3.eu-west-1.amazonaws.com/with.dots/p/k");
  options_.path_style = true;
  EXPECT_EQ(url("s3://bucket/p"), "https://s3.eu-west-1.amazonaws.com/bucket/p/k");
  options_.path_style.reset();
  options_.region = "cn-north-1";
  EXPECT_EQ(url("s3://bucket"), "https://bucket.s3.cn-north-1.amazonaws.com.cn/k");
  options_.endpoint = "https://Store.example.com:443/base/";
  EXPECT_EQ(url("s3://bucket/p"), "https://store.example.com/base/bucket/p/k");
  options_.path_style = false;
  EXPECT_EQ(url("s3://bucket/p"), "https://bucket.store.example.com/base/p/k");
}

TEST_F(S3StoreTest, TheEnvironmentNamesRegionAndEndpoint) {
  options_.environment = [](const std::string& name) -> std::string {
    if (name == "AWS_REGION") return "us-west-2";
    if (name == "AWS_ENDPOINT_URL") return "http://all:9000";
    if (name == "AWS_ENDPOINT_URL_S3") return "http://s3:9000";
    return "";
  };
  static_cast<void>(Open({{.status = 404}}).Head("k"));
  EXPECT_EQ(Url(0), "http://s3:9000/bucket/p/k");
  EXPECT_THAT(HeaderOf(http_->requests[0], "authorization"), HasSubstr("/us-west-2/s3/"));
}

TEST_F(S3StoreTest, AListingGoesOverAllPagesAndIsSorted) {
  Store& store = Open({{.status = 200, .body = Page({"p/x b", "p/x/", "p/xa"}, "t+/=")},
                       {.status = 200, .body = Page({"p/x/1"}, "")}});
  const auto objects = store.List("x");
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_EQ(*objects, (std::vector<Object>{
                          {"x b", 5, "e-p/x b"}, {"x/1", 5, "e-p/x/1"}, {"xa", 4, "e-p/xa"}}));
  EXPECT_EQ(Url(0),
            "https://bucket.s3.us-east-1.amazonaws.com/"
            "?encoding-type=url&list-type=2&max-keys=1000&prefix=p%2Fx");
  EXPECT_THAT(Url(1), HasSubstr("?continuation-token=t%2B%2F%3D&encoding-type"));
}

TEST_F(S3StoreTest, AListingThatGoesInCirclesIsAnError) {
  Store& store = Open({{.status = 200, .body = Page({}, "a")},
                       {.status = 200, .body = Page({}, "b")},
                       {.status = 200, .body = Page({}, "a")}});
  EXPECT_THAT(store.List("").status().message(), HasSubstr("the same page again"));
}

TEST_F(S3StoreTest, AListingThatIsNoneIsAnError) {
  EXPECT_TRUE(
      absl::IsDataLoss(Open({{.status = 200, .body = Page({"p/a"}, "again")}}).List("").status()));
  EXPECT_TRUE(
      absl::IsDataLoss(Open({{.status = 200, .body = Page({"q/a"}, "")}}).List("").status()));
  const absl::Status html = Open({{.status = 200, .body = "<html>login"}}).List("a").status();
  EXPECT_TRUE(absl::IsDataLoss(html));
  EXPECT_THAT(std::string(html.message()), HasSubstr("cannot list s3://bucket/p/a: "));
}

// A page that was cut, or has too much, on its way.
TEST_F(S3StoreTest, ADamagedPageIsAskedForAgain) {
  const std::string page = Page({"p/a"}, "");
  Store& store = Open({{.status = 200, .body = page.substr(0, page.size() / 2)},
                       {.status = 200, .body = page + "more!"},
                       {.status = 200, .body = page}});
  const auto objects = store.List("");
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_EQ(objects->size(), 1);
  EXPECT_EQ(http_->requests.size(), 3);
  EXPECT_TRUE(absl::IsDataLoss(Open({{.status = 200, .body = "<html>"}}).List("").status()));
  EXPECT_EQ(http_->requests.size(), 3) << "and then it is none";
}

TEST_F(S3StoreTest, ReadsTheVersionThatWasFound) {
  Store& store = Open({{.status = 200, .headers = {{"content-length", "100"}, {"etag", "\"abc\""}}},
                       {.status = 206,
                        .headers = {{"content-range", "bytes 7-9/100"}, {"etag", "\"abc\""}},
                        .body = "xyz"},
                       {.status = 412, .headers = {{"x-amz-request-id", "REQ"}}}});
  const auto object = store.Head("a \xc3\xa9");
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(*object, (Object{"a \xc3\xa9", 100, "abc"}));
  EXPECT_THAT(Url(0), ::testing::EndsWith("/p/a%20%C3%A9"));
  std::vector<uint8_t> out(3);
  ASSERT_TRUE(store.Read(*object, 7, absl::MakeSpan(out)).ok());
  EXPECT_EQ(out, (std::vector<uint8_t>{'x', 'y', 'z'}));
  EXPECT_EQ(HeaderOf(http_->requests[1], "range"), "bytes=7-9");
  EXPECT_EQ(HeaderOf(http_->requests[1], "if-match"), "\"abc\"");
  const absl::Status changed = store.Read(*object, 7, absl::MakeSpan(out));
  EXPECT_TRUE(absl::IsFailedPrecondition(changed)) << changed;
  EXPECT_THAT(std::string(changed.message()), HasSubstr("s3://bucket/p/a \xc3\xa9, bytes 7 to 9"));
}

TEST_F(S3StoreTest, AllOfAnObjectIsOneRequest) {
  options_.retries.most_attempts = 3;
  Store& store = Open(
      {{.status = 200, .headers = {{"content-length", "3"}}, .body = "xy"},
       {.status = 200, .headers = {{"content-length", "3"}, {"etag", "\"abc\""}}, .body = "xyz"},
       {.status = 200, .headers = {{"content-length", "9"}}, .body = "xyz", .overflow = true},
       {.status = 206, .body = "xyz"},
       {.status = 404, .body = Error("NoSuchKey")}});
  std::vector<uint8_t> bytes(100);
  const auto object = store.ReadAll("a b", 3, &bytes);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(*object, (Object{"a b", 3, "abc"}));
  EXPECT_EQ(bytes, (std::vector<uint8_t>{'x', 'y', 'z'}));
  ASSERT_EQ(http_->requests.size(), 2u) << "the first reply was too short";
  EXPECT_EQ(http_->requests[1].method, "GET");
  EXPECT_EQ(http_->requests[1].most_body_bytes, 3);
  EXPECT_EQ(HeaderOf(http_->requests[1], "range"), "");
  EXPECT_EQ(HeaderOf(http_->requests[1], "if-match"), "");
  const absl::Status large = store.ReadAll("k", 3, &bytes).status();
  EXPECT_TRUE(absl::IsOutOfRange(large)) << large;
  EXPECT_THAT(std::string(large.message()),
              AllOf(HasSubstr("cannot read s3://bucket/p/k"), HasSubstr("more than 3 bytes")));
  EXPECT_TRUE(absl::IsInternal(store.ReadAll("k", 3, &bytes).status())) << "a part was not asked";
  EXPECT_TRUE(absl::IsNotFound(store.ReadAll("k", 3, &bytes).status()));
}

TEST_F(S3StoreTest, ErrorsHaveObjectRangeCodeRequestAndAttempts) {
  options_.retries.most_attempts = 4;
  Store& store = Open({{.status = 503,
                        .headers = {{"x-amz-request-id", "4442587FB7D0A2F9"}},
                        .body = Error("SlowDown")}});
  uint8_t byte;
  const absl::Status status = store.Read({"k", 10, "v"}, 5, {&byte, 1});
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("cannot read s3://bucket/p/k, bytes 5 to 5: HTTP 503 SlowDown: "
                              "because (request id 4442587FB7D0A2F9)"),
                    HasSubstr("tried 4 times")));
}

TEST_F(S3StoreTest, ABucketElsewhereIsSaidSo) {
  const absl::Status status =
      Open({{.status = 301, .headers = {{"x-amz-bucket-region", "eu-west-1"}}}}).Head("k").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("region eu-west-1: set AWS_REGION"));
}

TEST_F(S3StoreTest, CredentialsThatHaveEndedAreRenewedOnce) {
  Store& store =
      Open({{.status = 400, .body = Error("ExpiredToken")}, {.status = 200, .body = Page({}, "")}});
  EXPECT_TRUE(store.List("").ok());
  EXPECT_EQ(HeaderOf(http_->requests[0], "x-amz-security-token"), "token1");
  EXPECT_EQ(HeaderOf(http_->requests[1], "x-amz-security-token"), "token2");
  Store& ended = Open({{.status = 400, .body = Error("ExpiredToken")}});
  const absl::Status status = ended.List("").status();
  EXPECT_EQ(http_->requests.size(), 2);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("ExpiredToken"), Not(HasSubstr("token2")), Not(HasSubstr("secret"))));
}

// Whether they have ended only a body can say. Those that hold are not thrown away for an object
// that nobody may see.
TEST_F(S3StoreTest, OfAHeadThatIsRefusedAByteIsAskedFor) {
  const HttpResponse refused = {.status = 403};
  Store& ended = Open({refused,
                       {.status = 400, .body = Error("ExpiredToken")},
                       {.status = 206, .body = "x"},
                       {.status = 200, .headers = {{"etag", "\"v\""}, {"content-length", "7"}}}});
  EXPECT_TRUE(ended.Head("k").ok());
  ASSERT_EQ(http_->requests.size(), 4);
  EXPECT_EQ(http_->requests[1].method, "GET");
  EXPECT_EQ(HeaderOf(http_->requests[1], "range"), "bytes=0-0");
  EXPECT_EQ(HeaderOf(http_->requests[3], "x-amz-security-token"), "token2");

  Store& closed = Open({refused,
                        {.status = 403, .body = Error("AccessDenied")},
                        refused,
                        {.status = 206, .body = "x"},
                        refused});
  EXPECT_THAT(std::string(closed.Head("k").status().message()), HasSubstr("AccessDenied"));
  EXPECT_TRUE(absl::IsPermissionDenied(closed.Head("k").status()));
  ASSERT_EQ(http_->requests.size(), 5);
  for (const HttpRequest& request : http_->requests) {
    EXPECT_EQ(HeaderOf(request, "x-amz-security-token"), "token1");
  }
}

// Somebody has put others in their place.
TEST_F(S3StoreTest, KeysThatWereTakenBackAreRenewedOnce) {
  Store& store = Open({{.status = 403, .body = Error("InvalidAccessKeyId")},
                       {.status = 200, .body = Page({}, "")}});
  EXPECT_TRUE(store.List("").ok());
  EXPECT_EQ(HeaderOf(http_->requests[1], "x-amz-security-token"), "token2");
}

TEST_F(S3StoreTest, ALongWriteGoesInPartsAndAShortOneInOne) {
  options_.part_bytes = 5 << 20;
  WritableStore& store =
      Open({{.status = 200,
             .body = "<InitiateMultipartUploadResult><UploadId>id/1</UploadId>"
                     "</InitiateMultipartUploadResult>"},
            {.status = 200, .headers = {{"etag", "\"one\""}}},
            {.status = 200, .headers = {{"etag", "\"two\""}}},
            {.status = 200,
             .body = "<CompleteMultipartUploadResult><ETag>&quot;all-2&quot;</ETag>"
                     "</CompleteMultipartUploadResult>"},
            {.status = 200, .headers = {{"etag", "\"short\""}}}});
  const std::string bytes((5 << 20) + 1, 'x');
  auto writer = *store.Create("k");
  ASSERT_TRUE(writer->Append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}).ok());
  EXPECT_EQ(*writer->Close(), (Object{"k", static_cast<int64_t>(bytes.size()), "all-2"}));
  writer.reset();
  ASSERT_EQ(http_->requests.size(), 4);  // nothing is left to be aborted
  EXPECT_EQ(http_->bodies[1].size(), 5 << 20);
  EXPECT_EQ(http_->bodies[2], "x");
  EXPECT_THAT(Url(2), ::testing::EndsWith("?partNumber=2&uploadId=id%2F1"));
  EXPECT_THAT(http_->bodies[3], HasSubstr("<PartNumber>2</PartNumber><ETag>&quot;two&quot;"));
  writer = *store.Create("k");
  EXPECT_EQ(*writer->Close(), (Object{"k", 0, "short"}));
  EXPECT_EQ(http_->requests[4].method, "PUT");
}

TEST_F(S3StoreTest, AnUploadThatIsNotClosedIsAborted) {
  WritableStore& store = Open({{.status = 200,
                                .body = "<InitiateMultipartUploadResult><UploadId>id</UploadId>"
                                        "</InitiateMultipartUploadResult>"},
                               {.status = 403, .body = Error("AccessDenied")},
                               {.status = 204}});
  {
    auto writer = *store.Create("k");
    const std::vector<uint8_t> bytes((16 << 20) + 1);
    const absl::Status status = writer->Append(bytes);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_EQ(writer->Close().status(), status);
  }
  EXPECT_EQ(http_->requests.back().method, "DELETE");
  EXPECT_THAT(http_->requests.back().url, ::testing::EndsWith("/p/k?uploadId=id"));
}

TEST_F(S3StoreTest, AConditionThatDoesNotHoldIsTold) {
  EXPECT_TRUE(absl::IsAlreadyExists(Open({{.status = 412, .body = Error("PreconditionFailed")}})
                                        .WriteIfAbsent("k", "x")
                                        .status()));
  EXPECT_EQ(HeaderOf(http_->requests[0], "if-none-match"), "*");
  for (const int status : {412, 404}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(
        Open({{.status = status}}).WriteIfMatch({"k", 1, "v"}, "x").status()));
    EXPECT_EQ(HeaderOf(http_->requests[0], "if-match"), "\"v\"");
  }
}

// The reply of the first attempt got lost, and the second one finds what the first has written.
TEST_F(S3StoreTest, AConditionalWriteWhoseReplyGotLostIsFoundByItsBytes) {
  const std::deque<HttpResponse> replies = {
      {.status = 500},
      {.status = 412},
      {.status = 200, .body = "mine"},
      {.status = 200, .headers = {{"content-length", "4"}, {"etag", "\"e\""}}}};
  EXPECT_EQ(*Open(replies).WriteIfAbsent("k", "mine"), (Object{"k", 4, "e"}));
  EXPECT_TRUE(absl::IsAlreadyExists(Open(replies).WriteIfAbsent("k", "other").status()));
}

}  // namespace
}  // namespace hetero::storage
