#include "runtime/storage/http/curl_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "tests/integration/kube/scripted_server.h"
#include "tests/support/temporary_folder.h"

namespace hetero::storage {
namespace {

using kube::ScriptedServer;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const ScriptedServer::Options kPlain = {.tls = false};

TEST(CurlClientTest, SendsWhatItIsGivenAsItStands) {
  ScriptedServer server(
      [](const auto&, auto& connection) {
        connection.Respond(200, "hello", "X-Thing:  a value \r\nx-thing: later\r\n");
      },
      kPlain);
  CurlClient client;
  const auto response = client.Send({.url = server.url() + "/a/../b//c%2Fd?x=1&y=",
                                     .headers = {{"range", "bytes=0-4"}, {"x-empty", ""}}});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "hello");
  EXPECT_EQ(response->Header("x-thing"), "later");
  const ScriptedServer::Request request = server.requests()[0];
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.target, "/a/../b//c%2Fd?x=1&y=");
  EXPECT_EQ(request.headers.at("range"), "bytes=0-4");
  EXPECT_EQ(request.headers.at("x-empty"), "");
}

TEST(CurlClientTest, SendsBodiesOfAnySizeWithoutAskingFirst) {
  ScriptedServer server([](const auto&, auto& connection) { connection.Respond(200, ""); }, kPlain);
  CurlClient client;
  const std::string body(3 << 20, 'x');
  for (const char* method : {"PUT", "POST"}) {
    ASSERT_TRUE(client.Send({.method = method, .url = server.url() + "/", .body = body}).ok());
    ASSERT_TRUE(client.Send({.method = method, .url = server.url() + "/"}).ok());
  }
  ASSERT_TRUE(client.Send({.method = "DELETE", .url = server.url() + "/"}).ok());
  const auto requests = server.requests();
  EXPECT_EQ(requests[0].method, "PUT");
  EXPECT_EQ(requests[0].body, body);
  EXPECT_EQ(requests[0].headers.count("expect"), 0);
  EXPECT_EQ(requests[0].headers.count("content-type"), 0);
  EXPECT_EQ(requests[1].headers.at("content-length"), "0");
  EXPECT_EQ(requests[2].method, "POST");
  EXPECT_EQ(requests[4].method, "DELETE");
}

TEST(CurlClientTest, OneConnectionServesOneRequestAfterTheOther) {
  ScriptedServer server([](const auto&, auto& connection) { connection.Respond(200, "x"); },
                        kPlain);
  CurlClient client;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client.Send({.url = server.url() + "/"}).ok());
  EXPECT_EQ(server.connections(), 1);
}

// A server ends connections that it has kept for a while, and may do so while a request is on its
// way: that is no failure yet.
TEST(CurlClientTest, AConnectionThatWasClosedMeanwhileIsReplaced) {
  ScriptedServer server(
      [](const auto&, auto& connection) {
        connection.Respond(200, "x");
        connection.Close();
      },
      kPlain);
  CurlClient client;
  const std::string body = "body";
  for (const char* method : {"GET", "PUT", "GET", "POST"}) {
    const bool sends = method[0] == 'P';
    const auto response = client.Send(
        {.method = method, .url = server.url() + "/", .body = sends ? body : std::string_view()});
    EXPECT_TRUE(response.ok()) << method << " " << response.status();
  }
  EXPECT_EQ(server.requests()[3].body, body);
}

TEST(CurlClientTest, ABodyGoesIntoThePlaceForItAndNoFurther) {
  ScriptedServer server(
      [](const auto& request, auto& connection) {
        connection.Respond(request.target == "/missing" ? 404 : 206, "0123456789");
      },
      kPlain);
  CurlClient client;
  std::string place(16, '?');
  const auto into = [&](size_t size) {
    return absl::Span<uint8_t>(reinterpret_cast<uint8_t*>(place.data()), size);
  };
  auto response = client.Send({.url = server.url() + "/", .into = into(10)});
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->received, 10);
  EXPECT_FALSE(response->overflow);
  EXPECT_EQ(place, "0123456789??????");
  response = client.Send({.url = server.url() + "/", .into = into(9)});
  ASSERT_TRUE(response.ok());
  EXPECT_TRUE(response->overflow);
  EXPECT_EQ(response->status, 206);
  response = client.Send({.url = server.url() + "/missing", .into = into(10)});
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->received, 0);
  EXPECT_EQ(response->body, "0123456789");
  response = client.Send({.url = server.url() + "/", .most_body_bytes = 9});
  ASSERT_TRUE(response.ok());
  EXPECT_TRUE(response->overflow);
}

TEST(CurlClientTest, AHeadHasNoBody) {
  ScriptedServer server(
      [](const auto&, auto& connection) {
        connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n");
      },
      kPlain);
  const auto response = CurlClient().Send({.method = "HEAD", .url = server.url() + "/x"});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->Header("content-length"), "1234");
}

TEST(CurlClientTest, WhatEndsEarlyIsUnavailable) {
  ScriptedServer server(
      [](const auto& request, auto& connection) {
        if (request.target == "/body") {
          connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234");
        } else if (request.target == "/chunk") {
          connection.BeginChunks();
          connection.Chunk("01234");
        } else if (request.target == "/head") {
          connection.Write("HTTP/1.1 200 OK\r\nConte");
        }
        connection.Close();
      },
      kPlain);
  CurlClient client;
  for (const char* path : {"/body", "/chunk", "/head", "/nothing"}) {
    const absl::Status status = client.Send({.url = server.url() + path}).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << path << " " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("127.0.0.1:"));
  }
  const absl::Status refused = client.Send({.url = "http://127.0.0.1:1/"}).status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
}

TEST(CurlClientTest, SilenceAndSlownessHaveTheirDeadlines) {
  ScriptedServer server(
      [](const auto& request, auto& connection) {
        if (request.target != "/slow") return connection.AwaitClose();
        connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        while (!connection.ClosedWithin(milliseconds(20))) connection.Write("x");
      },
      kPlain);
  CurlClient client;
  HttpRequest request{.url = server.url() + "/silent?secret=1"};
  request.deadlines.idle = milliseconds(200);
  absl::Status status = client.Send(request).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("said nothing for 0.2 s"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
  request.url = server.url() + "/slow";  // never silent for that long
  request.deadlines.total = milliseconds(600);
  status = client.Send(request).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("said nothing")));
}

TEST(CurlClientTest, HeadersWithoutEndAreRefused) {
  ScriptedServer server(
      [](const auto&, auto& connection) {
        connection.Write("HTTP/1.1 200 OK\r\n");
        while (!connection.ClosedWithin(milliseconds(0))) {
          connection.Write("X-Long: " + std::string(1000, 'x') + "\r\n");
        }
      },
      kPlain);
  const absl::Status status = CurlClient().Send({.url = server.url() + "/"}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST(CurlClientTest, ALineEndInAHeaderIsNoWayIn) {
  const absl::Status status =
      CurlClient().Send({.url = "http://127.0.0.1:1/", .headers = {{"a", "b\r\nc: d"}}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

TEST(CurlClientTest, TrustsOnlyTheAuthoritiesThatItWasGiven) {
  ScriptedServer server([](const auto&, auto& connection) { connection.Respond(200, "x"); });
  const testing::TemporaryFolder folder;
  CurlClient trusting({.ca_bundle = folder.Write("ca.pem", server.ca_pem())});
  const auto response = trusting.Send({.url = server.url() + "/"});
  EXPECT_TRUE(response.ok()) << response.status();
  const absl::Status status = CurlClient().Send({.url = server.url() + "/"}).status();
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
}

TEST(CurlClientTest, AuthoritiesThatCannotBeReadAreNamed) {
  const testing::TemporaryFolder folder;
  for (const std::string& file : {folder / "none.pem", folder.Write("bad.pem", "no certificate")}) {
    CurlClient client({.ca_bundle = file});
    const absl::Status status = client.Send({.url = "https://127.0.0.1:1/"}).status();
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(file));
    // Without TLS nobody is asked.
    EXPECT_TRUE(absl::IsUnavailable(client.Send({.url = "http://127.0.0.1:1/"}).status()));
  }
}

TEST(CurlClientTest, FollowsRedirectsOnlyAsFarAsAsked) {
  ScriptedServer server(
      [](const auto& request, auto& connection) {
        if (request.target == "/end") return connection.Respond(200, "there");
        connection.Respond(
            302, "elsewhere",
            request.target == "/loop" ? "Location: /loop\r\n" : "Location: /end\r\n");
      },
      kPlain);
  CurlClient client;
  EXPECT_EQ(client.Send({.url = server.url() + "/x"})->status, 302);
  const auto followed = client.Send({.url = server.url() + "/x", .most_redirects = 1});
  EXPECT_EQ(followed->body, "there");
  EXPECT_TRUE(absl::IsInvalidArgument(
      client.Send({.url = server.url() + "/loop", .most_redirects = 3}).status()));
}

TEST(CurlClientTest, ManyThreadsAtOnceHaveAConnectionEach) {
  ScriptedServer server(
      [](const auto& request, auto& connection) { connection.Respond(200, request.target); },
      kPlain);
  CurlClient client;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 25; ++i) {
        const std::string path = "/" + std::to_string(thread) + "/" + std::to_string(i);
        const auto response = client.Send({.url = server.url() + path});
        ASSERT_TRUE(response.ok()) << response.status();
        EXPECT_EQ(response->body, path);
      }
    });
  }
  threads.clear();
  EXPECT_LE(server.connections(), 8);
}

TEST(CurlClientTest, DoesNotShowThePasswordOfAProxy) {
  for (const char* proxy :
       {"http://user:PASSWORD@[bad", "other://user:PASSWORD@127.0.0.1:1", "http://user:PASSWORD",
        "http://user:PASSWORD@127.0.0.1:1", "http://user:PASSWORD@no-such-host.invalid:1"}) {
    setenv("http_proxy", proxy, 1);
    CurlClient client;
    const absl::Status status = client.Send({.url = "http://objects.example.invalid/x"}).status();
    unsetenv("http_proxy");
    EXPECT_FALSE(status.ok()) << proxy;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("objects.example.invalid: "), Not(HasSubstr("PASSWORD"))));
  }
}

TEST(CurlClientTest, GoesThroughTheProxyOfTheEnvironmentUnlessItIsLoopback) {
  ScriptedServer proxy([](const auto&, auto& connection) { connection.Respond(200, "proxy"); },
                       kPlain);
  ScriptedServer server([](const auto&, auto& connection) { connection.Respond(200, "server"); },
                        kPlain);
  setenv("http_proxy", proxy.url().c_str(), 1);
  CurlClient client;
  const auto through = client.Send({.url = "http://objects.example.invalid/x"});
  const auto direct = client.Send({.url = server.url() + "/x"});
  HttpRequest around{.url = "http://objects.example.invalid/x", .use_proxy = false};
  around.deadlines.total = seconds(5);
  const auto none = client.Send(around);
  unsetenv("http_proxy");
  ASSERT_TRUE(through.ok()) << through.status();
  EXPECT_EQ(through->body, "proxy");
  EXPECT_EQ(proxy.requests()[0].target, "http://objects.example.invalid/x");
  ASSERT_TRUE(direct.ok()) << direct.status();
  EXPECT_EQ(direct->body, "server");
  EXPECT_FALSE(none.ok());
}

}  // namespace
}  // namespace hetero::storage
