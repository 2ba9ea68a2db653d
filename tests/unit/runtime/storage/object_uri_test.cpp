#include "runtime/storage/object_uri.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetero::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ObjectUriTest, AnObjectIsBelowARoot) {
  const struct {
    const char* uri;
    const char* root;
    const char* name;
  } kCases[] = {
      {"file:///data/a b.jpg", "file:///", "data/a b.jpg"},
      {"file:///50%20", "file:///", "50%20"},  // a file's name is as it stands
      {"s3://bucket/a/b.jpg", "s3://bucket", "a/b.jpg"},
      {"s3://bucket//a//b%20", "s3://bucket", "/a//b%20"},  // and so is a key
      {"https://Host/a%20b/c+d.jpg", "https://host", "a b/c+d.jpg"},
      {"http://127.0.0.1:8000/a", "http://127.0.0.1:8000", "a"},
  };
  for (const auto& test : kCases) {
    const absl::StatusOr<ObjectUri> object = ParseObjectUri(test.uri);
    ASSERT_TRUE(object.ok()) << object.status();
    EXPECT_EQ(object->root, test.root);
    EXPECT_EQ(object->name, test.name);
  }
}

TEST(ObjectUriTest, WhatIsNoObjectIsRefused) {
  for (const char* uri :
       {"", "a.jpg", "/a.jpg", "file://a.jpg", "file:///", "file:///a/../b", "file:///a//b",
        "s3://bucket", "s3://bucket/", "s3://bucket/../a", "gs://bucket/a", "https://host",
        "https://host/", "https://host/a/%2e%2e/b", "https://host/a%2Fb", "https://host/a%"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseObjectUri(uri).status())) << uri;
  }
  EXPECT_THAT(std::string(ParseObjectUri("gs://bucket/a").status().message()),
              AllOf(HasSubstr("\"gs://bucket/a\" is at no store"), HasSubstr("https://host/path")));
  for (const char* uri :
       {"https://me:secret@host/a", "https://host/a?secret", "https://h/a#secret"}) {
    EXPECT_THAT(std::string(ParseObjectUri(uri).status().message()), Not(HasSubstr("secret")));
  }
}

TEST(ObjectUriTest, KeysAreAnyBytesButWays) {
  EXPECT_TRUE(CheckObjectName("s3://bucket", "a//b/").ok());
  EXPECT_FALSE(CheckObjectName("https://host", "a//b").ok());
  EXPECT_TRUE(CheckObjectName("s3://bucket", std::string(1024, 'a')).ok());
  EXPECT_FALSE(CheckObjectName("s3://bucket", std::string(1025, 'a')).ok());
  EXPECT_TRUE(CheckObjectName("s3://bucket", "..a/b..").ok());
  EXPECT_FALSE(CheckObjectName("s3://bucket", "a/..").ok());
  EXPECT_FALSE(CheckObjectName("s3://bucket", "").ok());
}

}  // namespace
}  // namespace hetero::storage
