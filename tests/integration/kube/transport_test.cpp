#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <filesystem>
#include <future>
#include <thread>

#include "tests/integration/kube/scripted_server.h"
#include "tests/integration/kube/server_access.h"

namespace hetero::kube {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr base::Duration kEnough = std::chrono::seconds(10);
constexpr base::Duration kShort = milliseconds(200);
// Long enough for a handshake on a busy machine: something is to arrive before it is over.
constexpr base::Duration kHandshake = std::chrono::seconds(2);

class Stopwatch {
 public:
  base::Duration elapsed() const { return base::Clock::Real().Now() - start_; }

 private:
  const base::Instant start_ = base::Clock::Real().Now();
};

// All lines of a stream, and how it ended.
struct Streamed {
  absl::StatusOr<Response> response;
  std::vector<std::string> lines;
};
Streamed ReadLines(Transport& transport, base::Duration idle = kEnough,
                   base::Duration limit = kEnough, size_t at_most = 1000) {
  Streamed result;
  result.response = transport.Stream({.path = "/lines"}, idle, limit,
                                     [&](std::string_view line) {
                                       result.lines.emplace_back(line);
                                       return result.lines.size() < at_most;
                                     },
                                     {});
  return result;
}

TEST(Transport, SendsAllOfARequest) {
  ScriptedServer server([](const auto&, auto& connection) {
    connection.Respond(201, R"({"a":1})", "X-Mixed-Case: Yes\r\n");
  });
  const auto transport = TransportTo(server);
  const auto response = transport->Send({.method = "POST",
                                         .path = "/api/v1/pods?labelSelector=a%3Db%2Cc",
                                         .body = "{}",
                                         .content_type = "application/merge-patch+json",
                                         .user_agent = "tester"},
                                        kEnough);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->body, R"({"a":1})");
  EXPECT_EQ(response->headers.at("x-mixed-case"), "Yes");
  const auto request = server.requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/api/v1/pods?labelSelector=a%3Db%2Cc");
  EXPECT_EQ(request.body, "{}");
  EXPECT_EQ(request.headers.at("content-type"), "application/merge-patch+json");
  EXPECT_EQ(request.headers.at("accept"), "application/json");
  EXPECT_EQ(request.headers.at("user-agent"), "tester");
  EXPECT_FALSE(request.headers.contains("authorization"));
}

TEST(Transport, KeepsAConnectionForTheNextRequest) {
  ScriptedServer server([](const auto&, auto& connection) { connection.Respond(200, "{}"); });
  const auto transport = TransportTo(server);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(transport->Send({.path = "/x"}, kEnough).ok());
  EXPECT_EQ(server.connections(), 1);
}

TEST(Transport, ReadsABodyOfManyChunks) {
  std::string expected;
  ScriptedServer server([&](const auto&, auto& connection) {
    connection.BeginChunks();
    for (int i = 0; i < 100; ++i)
      connection.Chunk(std::string(10'000, static_cast<char>('a' + i % 26)));
    connection.EndChunks();
  });
  for (int i = 0; i < 100; ++i) expected.append(10'000, static_cast<char>('a' + i % 26));
  const auto response = TransportTo(server)->Send({.path = "/x"}, kEnough);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_TRUE(response->body == expected);
}

TEST(Transport, AnHttpErrorIsAResponse) {
  ScriptedServer server([](const auto&, auto& connection) { connection.Respond(500, "oops"); });
  const auto response = TransportTo(server)->Send({.path = "/x"}, kEnough);
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 500);
  EXPECT_EQ(response->body, "oops");
}

TEST(Transport, FollowsNoRedirect) {
  ScriptedServer elsewhere([](const auto&, auto& connection) { connection.Respond(200, "{}"); });
  ScriptedServer server([&](const auto&, auto& connection) {
    connection.Respond(302, "", "Location: " + elsewhere.url() + "/stolen\r\n");
  });
  const auto transport =
      TransportTo(AccessTo(server, std::make_shared<TestCredentials>(Credential{.token = "t"})));
  const auto response = transport->Send({.path = "/x"}, kEnough);
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 302);
  EXPECT_EQ(elsewhere.connections(), 0);
}

TEST(Transport, FiftyRequestsGoOnBesideSevenSilentStreams) {
  ScriptedServer server([](const auto& request, auto& connection) {
    if (request.target != "/lines") return connection.Respond(200, request.target);
    connection.BeginChunks();
    connection.AwaitClose();
  });
  const auto transport = TransportTo(server);
  {
    std::vector<std::jthread> streams;
    for (int i = 0; i < 7; ++i) {
      streams.emplace_back([&](std::stop_token stop) {
        const auto ended = transport->Stream(
            {.path = "/lines"}, kEnough, kEnough, [](std::string_view) { return true; }, stop);
        EXPECT_EQ(ended.status().code(), absl::StatusCode::kCancelled);
      });
    }
    ASSERT_TRUE(server.AwaitRequests(7));
    std::vector<std::jthread> requests;
    for (int i = 0; i < 50; ++i) {
      requests.emplace_back([&, path = "/" + std::to_string(i)] {
        for (int j = 0; j < 4; ++j) {
          const auto response = transport->Send({.path = path}, kEnough);
          ASSERT_TRUE(response.ok()) << response.status();
          EXPECT_EQ(response->body, path);
        }
      });
    }
  }
  EXPECT_EQ(server.requests().size(), 207u);
}

TEST(Transport, AServerThatTricklesForEverEndsAtTheDeadline) {
  ScriptedServer server([](const auto&, auto& connection) {
    connection.BeginChunks();
    while (!connection.ClosedWithin(milliseconds(20))) connection.Chunk("x");
  });
  const Stopwatch watch;
  const auto response = TransportTo(server)->Send({.path = "/x"}, kShort);
  EXPECT_EQ(response.status().code(), absl::StatusCode::kDeadlineExceeded) << response.status();
  EXPECT_GE(watch.elapsed(), kShort);
  EXPECT_LT(watch.elapsed(), std::chrono::seconds(20));
}

TEST(Transport, AServerThatTricklesItsHeadersEndsAtTheDeadline) {
  ScriptedServer server([](const auto&, auto& connection) {
    connection.Write("HTTP/1.1 200 OK\r\n");
    while (!connection.ClosedWithin(milliseconds(20))) connection.Write("X: y\r\n");
  });
  const auto response = TransportTo(server)->Send({.path = "/x"}, kShort);
  EXPECT_EQ(response.status().code(), absl::StatusCode::kDeadlineExceeded) << response.status();
  EXPECT_THAT(response.status().ToString(),
              HasSubstr("127.0.0.1:" + std::to_string(server.port())));
}

TEST(Transport, AnAbandonedReplyIsNotDownloadedToItsEnd) {
  std::atomic<bool> gone = false;
  ScriptedServer server([&](const auto&, auto& connection) {
    connection.BeginChunks();
    const std::string chunk(1 << 16, 'x');
    while (!connection.ClosedWithin(milliseconds(1))) connection.Chunk(chunk);
    gone = true;
  });
  {
    const auto transport = TransportTo(server);
    EXPECT_EQ(transport->Send({.path = "/x"}, kHandshake).status().code(),
              absl::StatusCode::kDeadlineExceeded);
    for (int i = 0; i < 1000 && !gone; ++i) base::Clock::Real().SleepFor(milliseconds(5));
    EXPECT_TRUE(gone);
  }
}

TEST(Transport, StopEndsARequestAtOnce) {
  ScriptedServer server([](const auto&, auto& connection) { connection.AwaitClose(); });
  const auto transport = TransportTo(server);
  std::stop_source stop;
  const std::jthread stopper([&] {
    server.AwaitRequests(1);
    stop.request_stop();
  });
  const auto response = transport->Send({.path = "/x"}, kEnough, stop.get_token());
  EXPECT_EQ(response.status().code(), absl::StatusCode::kCancelled);
}

// Otherwise a server that never answers would keep the connection for ever.
TEST(Transport, ACallerWhoLeavesClosesTheConnection) {
  std::promise<bool> closed;
  ScriptedServer server([&closed](const auto&, auto& connection) {
    closed.set_value(connection.ClosedWithin(std::chrono::seconds(5)));
  });
  const auto transport = TransportTo(server);
  EXPECT_EQ(transport->Send({.path = "/x"}, kHandshake).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  std::future<bool> seen = closed.get_future();
  ASSERT_EQ(seen.wait_for(kEnough), std::future_status::ready);
  EXPECT_TRUE(seen.get());
}

TEST(Transport, CutsLinesWhereverTheyArrive) {
  ScriptedServer server([](const auto&, auto& connection) {
    connection.BeginChunks();
    for (const char* piece : {"fir", "st\nsec", "ond\r\n\n\nthird\nfourth\nun", "finished"}) {
      connection.Chunk(piece);
      connection.ClosedWithin(milliseconds(10));
    }
    connection.EndChunks();
  });
  const Streamed streamed = ReadLines(*TransportTo(server));
  ASSERT_TRUE(streamed.response.ok()) << streamed.response.status();
  EXPECT_EQ(streamed.response->status, 200);
  EXPECT_THAT(streamed.lines, ElementsAre("first", "second", "third", "fourth", "unfinished"));
}

TEST(Transport, GivesALineBeforeTheNextOneIsThere) {
  ScriptedServer server([](const auto&, auto& connection) {
    connection.BeginChunks();
    connection.Chunk("one\n");
    connection.AwaitClose();
  });
  const Streamed streamed = ReadLines(*TransportTo(server), kEnough, kEnough, /*at_most=*/1);
  ASSERT_TRUE(streamed.response.ok()) << streamed.response.status();
  EXPECT_THAT(streamed.lines, ElementsAre("one"));
}

TEST(Transport, ASilentStreamEnds) {
  ScriptedServer server([](const auto&, auto& connection) {
    connection.BeginChunks();
    connection.Chunk("one\n");
    connection.AwaitClose();
  });
  const Streamed streamed = ReadLines(*TransportTo(server), kHandshake);
  EXPECT_EQ(streamed.response.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(streamed.response.status().ToString(), HasSubstr("silent"));
  EXPECT_THAT(streamed.lines, ElementsAre("one"));
}

// An option of this process's connection to `port`; -1: there is no such connection.
int OptionOfConnectionTo(int port, int level, int option) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_in peer{};
    socklen_t size = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family != AF_INET || ntohs(peer.sin_port) != port) continue;
    int value = -1;
    size = sizeof(value);
    return getsockopt(fd, level, option, &value, &size) == 0 ? value : -1;
  }
  return -1;
}

// A server that lost its power answers nothing, and a reader alone never finds out. The kernel asks
// it while nothing is under way, and gives up what was sent and is not acknowledged.
void ExpectVanishedPeerNoticed(Transport& transport, int port) {
  int asks = -1, after = -1, unacknowledged = -1;
  const auto look = [&](std::string_view) {
    asks = OptionOfConnectionTo(port, SOL_SOCKET, SO_KEEPALIVE);
    after = OptionOfConnectionTo(port, IPPROTO_TCP, TCP_KEEPIDLE);
    unacknowledged = OptionOfConnectionTo(port, IPPROTO_TCP, TCP_USER_TIMEOUT);
    return false;
  };
  const auto ended = transport.Stream({.path = "/x"}, kEnough, kEnough, look, {});
  EXPECT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(asks, 1);
  EXPECT_EQ(after, 15);
  EXPECT_EQ(unacknowledged, 30'000) << "milliseconds";
}

void SayLines(const ScriptedServer::Request&, ScriptedServer::Connection& connection) {
  connection.BeginChunks();
  while (!connection.ClosedWithin(milliseconds(10))) connection.Chunk("line\n");
}

TEST(Transport, TheKernelAsksWhetherTheServerIsStillThere) {
  ScriptedServer server(SayLines);
  ExpectVanishedPeerNoticed(*TransportTo(server), server.port());
}

TEST(Transport, TheKernelAsksWithoutTlsToo) {
  ScriptedServer server(SayLines, {.tls = false});
  ExpectVanishedPeerNoticed(*TransportTo(server), server.port());
}

// The addresses of a name are tried by cpprestsdk, on sockets that it shows to nobody before: a
// connection is asked about from its second request on. A stream is its connection's first; that
// the server has vanished shows in its silence.
TEST(Transport, AServerGivenByNameIsGivenUpToo) {
  ScriptedServer server([](const auto& request, auto& connection) {
    if (request.target != "/lines") return connection.Respond(200, "{}");
    connection.BeginChunks();
    connection.Chunk("one\n");
    connection.AwaitClose();
  });
  ClusterAccess access = AccessTo(server);
  access.server = "https://localhost:" + std::to_string(server.port());
  const auto transport = TransportTo(access);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(transport->Send({.path = "/x"}, kEnough).ok());
  ASSERT_EQ(server.connections(), 1);
  EXPECT_EQ(OptionOfConnectionTo(server.port(), SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(OptionOfConnectionTo(server.port(), IPPROTO_TCP, TCP_USER_TIMEOUT), 30'000);
  const Streamed streamed = ReadLines(*transport, kHandshake);
  EXPECT_EQ(streamed.response.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(streamed.lines, ElementsAre("one"));
}

TEST(Transport, AStreamThatIsNeverSilentEndsAtItsLimit) {
  ScriptedServer server([](const auto&, auto& connection) {
    connection.BeginChunks();
    while (!connection.ClosedWithin(milliseconds(10))) connection.Chunk("line\n");
  });
  const Streamed streamed = ReadLines(*TransportTo(server), kEnough, kHandshake);
  EXPECT_EQ(streamed.response.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(streamed.lines.empty());
}

TEST(Transport, AStreamRefusedByTheServerGivesItsBody) {
  ScriptedServer server([](const auto&, auto& connection) { connection.Respond(410, "too\nold"); });
  const Streamed streamed = ReadLines(*TransportTo(server));
  ASSERT_TRUE(streamed.response.ok());
  EXPECT_EQ(streamed.response->status, 410);
  EXPECT_EQ(streamed.response->body, "too\nold");
  EXPECT_TRUE(streamed.lines.empty());
}

TEST(Transport, LinesAreCappedAt16MiB) {
  constexpr size_t kLongest = 16 << 20;
  size_t size = 0;
  ScriptedServer server([&](const auto&, auto& connection) {
    connection.BeginChunks();
    const std::string megabyte(1 << 20, 'x');
    for (size_t sent = 0; sent < size; sent += megabyte.size()) connection.Chunk(megabyte);
    connection.Chunk("\n");
    connection.EndChunks();
  });
  const auto transport = TransportTo(server);
  size = kLongest;
  const Streamed longest = ReadLines(*transport);
  ASSERT_TRUE(longest.response.ok()) << longest.response.status();
  EXPECT_EQ(longest.lines.at(0).size(), kLongest);
  size = kLongest + (1 << 20);
  EXPECT_EQ(ReadLines(*transport).response.status().code(), absl::StatusCode::kResourceExhausted);
}

// cpprestsdk alone would read ahead without end.
TEST(Transport, ASlowReaderSlowsTheServerDown) {
  std::atomic<size_t> sent = 0;
  ScriptedServer server([&](const auto&, auto& connection) {
    connection.BeginChunks();
    const std::string line = std::string((1 << 16) - 1, 'x') + "\n";
    while (sent < size_t{256} << 20 && !connection.ClosedWithin(milliseconds(0))) {
      connection.Chunk(line);
      sent += line.size();
    }
    connection.EndChunks();
  });
  const auto transport = TransportTo(server);
  size_t read = 0;
  const auto response = transport->Stream({.path = "/lines"}, kEnough, kEnough,
                                          [&](std::string_view line) {
                                            if (read == 0)
                                              base::Clock::Real().SleepFor(milliseconds(300));
                                            read += line.size();
                                            return false;
                                          },
                                          {});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_LT(sent.load(), size_t{32} << 20);
}

}  // namespace
}  // namespace hetero::kube
