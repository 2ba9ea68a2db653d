#include "operator/kube/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/integration/kube/scripted_server.h"
#include "tests/integration/kube/server_access.h"

// Client and transport together; what needs no network is in tests/unit/operator/kube.
namespace hetero::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::ElementsAre;

struct Fixture {
  explicit Fixture(ScriptedServer::Script script) : server(std::move(script)) {}

  ScriptedServer server;
  std::unique_ptr<Transport> transport = TransportTo(server);
  metrics::Registry registry;
  Client client{*transport, base::Clock::Real(), registry, {}};
};

TEST(Client, TriesAgainAfterAsLongAsTheServerAsks) {
  std::atomic<int> calls = 0;
  Fixture f([&](const auto&, auto& connection) {
    if (++calls < 3) return connection.Respond(429, "busy", "Retry-After: 0\r\n");
    connection.Respond(200, R"({"metadata":{"name":"a"}})");
  });
  const auto pod = f.client.Get(kPods, {"x", "a"});
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(f.registry
                .GetCounter("rest_client_requests_total", "",
                            {{"code", "429"}, {"method", "GET"}, {"host", f.transport->host()}})
                .value(),
            2);
}

TEST(Client, AServerErrorWithoutRetryAfterIsNotRepeated) {
  Fixture f([](const auto&, auto& connection) { connection.Respond(500, "broken"); });
  EXPECT_EQ(f.client.Get(kPods, {"x", "a"}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(f.server.requests().size(), 1u);
}

TEST(Client, DeletesWithABody) {
  Fixture f([](const auto&, auto& connection) { connection.Respond(200, "{}"); });
  ASSERT_TRUE(f.client.Delete(kPods, {"x", "a"}, {.grace_period_seconds = 0, .uid = "u"}).ok());
  const auto request = f.server.requests().at(0);
  EXPECT_EQ(request.method, "DELETE");
  const json body = json::parse(request.body);
  EXPECT_EQ(body["gracePeriodSeconds"], 0);
  EXPECT_EQ(body["preconditions"]["uid"], "u");
}

TEST(Client, WatchesUntilTheServerEndsIt) {
  Fixture f([](const auto&, auto& connection) {
    connection.BeginChunks();
    connection.Chunk(R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})");
    connection.Chunk("\n{\"type\":\"BOOK");
    connection.ClosedWithin(milliseconds(10));
    connection.Chunk("MARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}\n");
    connection.EndChunks();
  });
  std::vector<std::string> events;
  const absl::Status ended =
      f.client.Watch(kPods, "", {.label_selector = "a=b", .resource_version = "5"},
                     [&](std::string_view type, const json& object) {
                       events.push_back(std::string(type) + object["metadata"].dump());
                     },
                     {});
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_THAT(events, ElementsAre(R"(ADDED{"name":"a"})", R"(BOOKMARK{"resourceVersion":"7"})"));
  EXPECT_EQ(f.server.requests().at(0).target,
            "/api/v1/pods?watch=true&allowWatchBookmarks=true&labelSelector=a%3Db"
            "&resourceVersion=5&timeoutSeconds=290");
}

TEST(Client, AnExpiredWatchIsOutOfRangeBothWays) {
  std::atomic<int> calls = 0;
  Fixture f([&](const auto&, auto& connection) {
    const json gone = {{"kind", "Status"}, {"code", 410}, {"reason", "Expired"}};
    if (++calls == 1) return connection.Respond(410, gone.dump());
    connection.BeginChunks();
    connection.Chunk(json{{"type", "ERROR"}, {"object", gone}}.dump() + "\n");
    connection.EndChunks();
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(f.client.Watch(kPods, "", {}, [](std::string_view, const json&) {}, {}).code(),
              absl::StatusCode::kOutOfRange);
  }
}

TEST(Client, AWatchThatFallsSilentEnds) {
  Fixture f([](const auto& request, auto& connection) {
    if (request.target.find("namespaces/mute") == std::string::npos) connection.BeginChunks();
    connection.AwaitClose();
  });
  const auto watch = [&f](const std::string& name_space, const WatchOptions& options) {
    return f.client.Watch(kPods, name_space, options, [](std::string_view, const json&) {}, {})
        .code();
  };
  EXPECT_EQ(watch("x", {.silence = milliseconds(200)}), absl::StatusCode::kDeadlineExceeded);
  // The guard is 10 s after what is asked for.
  EXPECT_EQ(watch("x", {.timeout = milliseconds(200) - std::chrono::seconds(10)}),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(watch("mute", {.silence = milliseconds(200)}), absl::StatusCode::kUnavailable)
      << "it was never opened";
}

TEST(Client, ReadsALogLineByLine) {
  Fixture f([](const auto&, auto& connection) { connection.Respond(200, "one\n\ntwo"); });
  std::vector<std::string> lines;
  const absl::Status ended = f.client.GetLines("/api/v1/namespaces/x/pods/y/log?container=runtime",
                                               [&](std::string_view line) {
                                                 lines.emplace_back(line);
                                                 return true;
                                               },
                                               {});
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_THAT(lines, ElementsAre("one", "two"));
}

}  // namespace
}  // namespace hetero::kube
