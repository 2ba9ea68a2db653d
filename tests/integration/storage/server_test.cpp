#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/storage/open_store.h"
#include "tests/integration/storage/s3_server.h"

// The store of S3 against a real server.
namespace hetero::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class ServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new S3Server; }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  ServerTest() {
    server_->MakeBucket("bucket");
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    uri_ = absl::StrCat("s3://bucket/", test->name());
    store_ = Open(server_->Options());
  }

  std::unique_ptr<WritableStore> Open(const StoreOptions& options) {
    return *OpenWritableStore(uri_, options);
  }
  Object Write(const std::string& name, std::string_view bytes) {
    auto writer = *store_->Create(name);
    EXPECT_TRUE(writer->Append(BytesOf(bytes)).ok());
    const absl::StatusOr<Object> object = writer->Close();
    EXPECT_TRUE(object.ok()) << object.status();
    return object.value_or(Object());
  }
  absl::StatusOr<std::string> Read(const Object& object, int64_t offset, size_t length) {
    std::string text(length, '?');
    const absl::Status status =
        store_->Read(object, offset, {reinterpret_cast<uint8_t*>(text.data()), length});
    if (!status.ok()) return status;
    return text;
  }

  static S3Server* server_;
  std::string uri_;
  std::unique_ptr<WritableStore> store_;
};

S3Server* ServerTest::server_ = nullptr;

TEST_F(ServerTest, ReadsWhatItHasWritten) {
  const Object written = Write("folder/x", "0123456789");
  const absl::StatusOr<Object> found = store_->Head("folder/x");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, written);
  EXPECT_FALSE(found->version.empty());
  EXPECT_EQ(*Read(*found, 0, 10), "0123456789");
  EXPECT_EQ(*Read(*found, 3, 4), "3456");
  EXPECT_EQ(*Read(*found, 9, 1), "9");
  EXPECT_EQ(*store_->List(""), (std::vector<Object>{*found}));
  EXPECT_EQ(Write("empty", "").size, 0);
  EXPECT_TRUE(store_->Delete("folder/x").ok());
  EXPECT_TRUE(store_->Delete("folder/x").ok());
  EXPECT_TRUE(absl::IsNotFound(Read(*found, 0, 1).status()));
}

TEST_F(ServerTest, KeysMayHaveAnyBytesThatAServerTakes) {
  const std::vector<std::string> names = {
      "plain.jpg",        "with space", "plus+plus",          "100%",
      "a&b=c?d#e",        "quote'\"",   "s\u00e9ries/\u1234", "tilde~(1)*!",
      "semi;colon,comma", "<xml>&amp;", "at@sign:colon"};
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Object object = Write(name, "x" + name);
    EXPECT_EQ(*store_->Head(name), object);
    const auto text = Read(object, 1, name.size());
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text, name);
  }
  std::vector<std::string> sorted = names, listed;
  std::sort(sorted.begin(), sorted.end());
  const auto objects = store_->List("");
  ASSERT_TRUE(objects.ok()) << objects.status();
  for (const Object& object : *objects) listed.push_back(object.name);
  EXPECT_EQ(listed, sorted);
}

TEST_F(ServerTest, AListingGoesOverManyPages) {
  std::vector<std::string> names;
  for (int i = 0; i < 23; ++i) names.push_back(absl::StrCat("a/", i % 3, "/", i));
  for (const std::string& name : names) Write(name, name);
  Write("b", "");
  StoreOptions options = server_->Options();
  options.list_page = 5;
  const auto objects = Open(options)->List("a/");
  ASSERT_TRUE(objects.ok()) << objects.status();
  std::sort(names.begin(), names.end());
  ASSERT_EQ(objects->size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ((*objects)[i].name, names[i]);
  EXPECT_EQ(Open(options)->List("a/1/")->size(), 8);
  EXPECT_EQ(Open(options)->List("c")->size(), 0);
}

TEST_F(ServerTest, AnObjectThatWasReplacedIsNotRead) {
  const Object old = Write("x", "0123456789");
  Write("x", "9876543210");
  const absl::Status status = Read(old, 0, 10).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(uri_ + "/x, bytes 0 to 9"));
}

TEST_F(ServerTest, OfManyWritersOneIsFirst) {
  std::vector<absl::StatusOr<Object>> results(6, absl::UnknownError(""));
  std::vector<std::jthread> writers;
  for (size_t i = 0; i < results.size(); ++i) {
    writers.emplace_back(
        [&, i] { results[i] = store_->WriteIfAbsent("lock", absl::StrCat("writer ", i)); });
  }
  writers.clear();
  int winners = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].ok()) {
      EXPECT_TRUE(absl::IsAlreadyExists(results[i].status())) << results[i].status();
      continue;
    }
    ++winners;
    const absl::StatusOr<std::string> text = Read(*results[i], 0, 8);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text, absl::StrCat("writer ", i));
  }
  EXPECT_EQ(winners, 1);
}

// One after the other: this server compares versions before it takes the bytes, so that of two at
// once both may win.
TEST_F(ServerTest, OnlyTheVersionThatIsThereIsReplaced) {
  const Object first = *store_->WriteIfAbsent("lock", "1");
  const absl::StatusOr<Object> second = store_->WriteIfMatch(first, "22");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*second, *store_->Head("lock"));
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->WriteIfMatch(first, "3").status()));
  EXPECT_EQ(*Read(*second, 0, 2), "22");
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->WriteIfMatch({"none", 1, "v"}, "x").status()));
}

TEST_F(ServerTest, AnUploadInPartsIsOneObject) {
  std::string bytes;
  for (int i = 0; bytes.size() < (11 << 20); ++i) absl::StrAppend(&bytes, i, " ");
  StoreOptions options = server_->Options();
  options.part_bytes = 5 << 20;
  store_ = Open(options);
  auto writer = *store_->Create("big");
  ASSERT_TRUE(writer->Append(BytesOf(std::string_view(bytes).substr(0, 7 << 20))).ok());
  EXPECT_EQ(store_->List("")->size(), 0);
  ASSERT_TRUE(writer->Append(BytesOf(std::string_view(bytes).substr(7 << 20))).ok());
  const auto object = writer->Close();
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(*object, *store_->Head("big"));
  const auto text = Read(*object, 0, bytes.size());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(*text == bytes);
  {
    auto abandoned = *store_->Create("abandoned");
    ASSERT_TRUE(abandoned->Append(BytesOf(bytes)).ok());
  }
  EXPECT_TRUE(absl::IsNotFound(store_->Head("abandoned").status()));
}

TEST_F(ServerTest, ABucketMayBeInTheNameOfTheHost) {
  const Object written = Write("a b/\u1234", "0123456789");
  StoreOptions options = server_->Options();
  options.endpoint = "http://localhost:" + server_->port();
  options.path_style = false;
  store_ = Open(options);
  EXPECT_EQ(*store_->List(""), (std::vector<Object>{written}));
  EXPECT_EQ(*Read(written, 2, 3), "234");
}

TEST(TlsServerTest, IsTrustedByItsAuthorityAlone) {
  const S3Server server(/*tls=*/true);
  server.MakeBucket("bucket");
  StoreOptions options = server.Options();
  const auto store = *OpenWritableStore("s3://bucket", options);
  const absl::StatusOr<Object> written = store->WriteIfAbsent("x", "0123456789");
  ASSERT_TRUE(written.ok()) << written.status();
  std::string text(4, '?');
  const absl::Status read =
      store->Read(*written, 3, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_EQ(text, "3456");
  options.ca_bundle.clear();
  const absl::Status stranger = (*OpenStore("s3://bucket", options))->Head("x").status();
  EXPECT_TRUE(absl::IsUnauthenticated(stranger)) << stranger;
  EXPECT_THAT(std::string(stranger.message()),
              AllOf(HasSubstr("s3://bucket/x"), HasSubstr("certificate"), HasSubstr("1 time")));
}

TEST_F(ServerTest, WhatIsWrongIsNamed) {
  EXPECT_TRUE(absl::IsNotFound(store_->Head("none").status()));
  const absl::Status missing = Read({"none", 10, ""}, 0, 1).status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()),
              AllOf(HasSubstr(uri_ + "/none"), HasSubstr("NoSuchKey")));
  StoreOptions options = server_->Options();
  const absl::Status bucket = (*OpenStore("s3://no-such-bucket", options))->List("").status();
  EXPECT_TRUE(absl::IsNotFound(bucket)) << bucket;
  EXPECT_THAT(std::string(bucket.message()), HasSubstr("NoSuchBucket"));

  options.environment = KeysOnly(S3Server::kKey, S3Server::kWrongSecret);
  const absl::Status secret = Open(options)->List("").status();
  EXPECT_TRUE(absl::IsPermissionDenied(secret)) << secret;
  EXPECT_THAT(std::string(secret.message()),
              AllOf(HasSubstr("SignatureDoesNotMatch"), Not(HasSubstr(S3Server::kWrongSecret))));

  // A HEAD's reply has no body that would say so.
  EXPECT_THAT(std::string(Open(options)->Head("x").status().message()),
              AllOf(HasSubstr(uri_ + "/x: HTTP 403"), HasSubstr("SignatureDoesNotMatch")));

  options = server_->Options();
  options.anonymous = true;
  EXPECT_TRUE(absl::IsPermissionDenied(Open(options)->List("").status()));

  options = server_->Options();
  options.region = S3Server::kOtherRegion;
  const absl::Status region = Open(options)->List("").status();
  EXPECT_FALSE(region.ok());
  EXPECT_THAT(std::string(region.message()),
              AllOf(HasSubstr("AuthorizationHeaderMalformed"), HasSubstr(S3Server::kRegion)));
}

}  // namespace
}  // namespace hetero::storage
