#include "runtime/storage/http/url.h"

#include <gtest/gtest.h>

namespace hetero::storage {
namespace {

TEST(UrlTest, EscapesAllButUnreservedBytes) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string escaped = EscapeUrl(all, /*keep_slashes=*/false);
  EXPECT_EQ(escaped.size(), 66 + 3 * (256 - 66));
  EXPECT_EQ(*UnescapeForm(escaped), all);
  EXPECT_EQ(EscapeUrl("a/b c+\xc3\xa9~", true), "a/b%20c%2B%C3%A9~");
  EXPECT_EQ(EscapeUrl("a/b", false), "a%2Fb");
}

TEST(UrlTest, ReadsFormsAndRefusesHalfEscapes) {
  EXPECT_EQ(*UnescapeForm("a+b%2bc%2F"), "a b+c/");
  for (const char* text : {"%", "%4", "%zz", "a%4"}) {
    EXPECT_FALSE(UnescapeForm(text).ok()) << text;
  }
}

TEST(UrlTest, SortsAQueryByEscapedBytes) {
  EXPECT_EQ(SortedQuery({{"b", ""}, {"a", "2"}, {"a", "1"}, {"A", "x y"}}), "A=x%20y&a=1&a=2&b=");
  EXPECT_EQ(SortedQuery({}), "");
}

TEST(UrlTest, TakesAnAddressApart) {
  const Url url = *ParseUrl("HTTPS://Example.COM:8443/A%20b//");
  EXPECT_EQ(url.scheme, "https");
  EXPECT_EQ(url.host, "example.com");
  EXPECT_EQ(url.authority, "example.com:8443");
  EXPECT_EQ(url.path, "/A%20b");
  EXPECT_EQ(ParseUrl("http://h:80")->authority, "h");
  EXPECT_EQ(ParseUrl("http://h:443")->authority, "h:443");
  const Url v6 = *ParseUrl("http://[FD00:ec2::23]:81/x");
  EXPECT_EQ(v6.host, "fd00:ec2::23");
  EXPECT_EQ(v6.authority, "[fd00:ec2::23]:81");
}

TEST(UrlTest, RefusesWhatIsNoAddress) {
  for (const char* text : {"", "host/x", "ftp://host", "https://", "https:///x", "https://h:0",
                           "https://h:65536", "https://h:x", "https://h:1:2", "https://a b",
                           "https://user@h", "https://h/x?y", "https://h/#z", "https://h/a b",
                           "https://h/\xc3\xa9", "https://[::1", "https://[x]", "https://h\n/"}) {
    EXPECT_FALSE(ParseUrl(text).ok()) << text;
  }
}

TEST(UrlTest, KnowsLoopback) {
  for (const char* host : {"localhost", "bucket.localhost", "127.0.0.1", "127.9.9.9", "::1"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host :
       {"127.example.com", "10.0.0.1", "localhost.example.com", "notlocalhost", "128.0.0.1"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

}  // namespace
}  // namespace hetero::storage
