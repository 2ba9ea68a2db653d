#include "base/http_endpoint.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <vector>

namespace hetero::metrics {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A plain socket, so that the test does not share its HTTP code with what it tests.
int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const timeval limit{10, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

int ConnectIpv6(int port) {
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  const timeval limit{10, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<uint16_t>(port));
  address.sin6_addr = in6addr_loopback;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

void Send(int fd, const std::string& text) {
  ASSERT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

// Up to and including `end`, or all until the peer closes.
std::string Receive(int fd, const std::string& end = "") {
  std::string text;
  char byte;
  while ((end.empty() || !text.ends_with(end)) && recv(fd, &byte, 1, 0) == 1) text.push_back(byte);
  return text;
}

// Status line, headers and body.
std::string Get(int port, const std::string& path, const std::string& headers = "") {
  const int fd = Connect(port);
  if (fd < 0) return "not connected";
  Send(fd, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  const std::string response = Receive(fd);
  close(fd);
  return response;
}

TEST(HttpEndpointTest, ServesMetricsHealthAndReadiness) {
  Registry registry;
  registry.GetCounter("steps_total", "Steps.").Add(4);
  HttpEndpoint endpoint(registry);
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  ASSERT_GT(endpoint.port(), 0);
  EXPECT_THAT(Get(endpoint.port(), "/metrics"), HasSubstr("\nsteps_total 4\n"));
  EXPECT_THAT(Get(endpoint.port(), "/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(endpoint.port(), "/readyz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(endpoint.port(), "/nothing"), StartsWith("HTTP/1.1 404"));
}

TEST(HttpEndpointTest, ReadinessCanChangeWhileServing) {
  Registry registry;
  HttpEndpoint endpoint(registry);
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  std::atomic<bool> ready{false};
  endpoint.SetReadiness([&] {
    return ready ? absl::OkStatus() : absl::UnavailableError("2 of 3 members have joined");
  });
  const std::string waiting = Get(endpoint.port(), "/readyz");
  EXPECT_THAT(waiting, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(waiting, EndsWith("2 of 3 members have joined\n"));
  ready = true;
  EXPECT_THAT(Get(endpoint.port(), "/readyz"), StartsWith("HTTP/1.1 200"));
}

TEST(HttpEndpointTest, FurtherHandlersGetTheirQuery) {
  Registry registry;
  HttpEndpoint endpoint(registry);
  endpoint.Handle("/echo", [](const HttpRequest& request) {
    return HttpResponse{.status = 202,
                        .content_type = "application/json",
                        .body = request.path + "?" + request.query.at("step")};
  });
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  const std::string response = Get(endpoint.port(), "/echo?step=12");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 202"));
  EXPECT_THAT(response, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(response, EndsWith("\r\n\r\n/echo?12"));
}

TEST(HttpEndpointTest, AGuardAnswersInThePlaceOfEveryPath) {
  Registry registry;
  HttpEndpoint endpoint(registry);
  endpoint.Handle("/page", [](const HttpRequest&) {
    return HttpResponse{.body = "page", .headers = {{"X-Further", "yes"}}};
  });
  endpoint.SetGuard([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.origin.host == "localhost" && request.origin.from_this_machine) return std::nullopt;
    return HttpResponse{.status = 403, .body = "not as " + request.origin.host};
  });
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  EXPECT_THAT(Get(endpoint.port(), "/page"), HasSubstr("X-Further: yes\r\n"));
  for (const char* path : {"/page", "/healthz", "/metrics", "/nothing"}) {
    const int fd = Connect(endpoint.port());
    Send(fd, std::string("GET ") + path + " HTTP/1.1\r\nHost: rebound.example.com\r\n\r\n");
    const std::string response = Receive(fd);
    EXPECT_THAT(response, StartsWith("HTTP/1.1 403")) << path;
    EXPECT_THAT(response, EndsWith("not as rebound.example.com")) << path;
    close(fd);
  }
}

// As browsers ask, through a proxy that knows gzip alone.
TEST(HttpEndpointTest, PacksByGzipOrNotAtAll) {
  HttpEndpoint endpoint;
  endpoint.Handle("/page", [](const HttpRequest&) {
    return HttpResponse{.content_type = "text/html", .body = std::string(10000, 'x')};
  });
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  EXPECT_THAT(Get(endpoint.port(), "/page", "Accept-Encoding: gzip, deflate, br\r\n"),
              HasSubstr("Content-Encoding: gzip\r\n"));
  for (const char* unknown : {"", "Accept-Encoding: br\r\n", "Accept-Encoding: deflate, br\r\n"}) {
    EXPECT_THAT(Get(endpoint.port(), "/page", unknown),
                AllOf(Not(HasSubstr("Content-Encoding")), EndsWith("xxx")));
  }
}

TEST(HttpEndpointTest, TakenPortIsNamed) {
  Registry registry;
  HttpEndpoint first(registry), second(registry);
  ASSERT_TRUE(first.Start("127.0.0.1", 0).ok());
  const absl::Status status = second.Start("127.0.0.1", first.port());
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr("127.0.0.1 port " + std::to_string(first.port())));
  EXPECT_THAT(status.message(), HasSubstr("Address already in use"));
}

TEST(HttpEndpointTest, StopClosesOpenConnectionsAndThePort) {
  Registry registry;
  HttpEndpoint endpoint(registry);
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  const int fd = Connect(endpoint.port());
  Send(fd, "GET /metrics HTTP/1.1\r\n");
  const int port = endpoint.port();
  endpoint.Stop();
  EXPECT_EQ(Receive(fd), "");
  close(fd);
  EXPECT_EQ(Get(port, "/healthz"), "not connected");
  endpoint.Stop();
}

// Four of them, a thread each, made every probe time out, and the kubelet ended the process.
TEST(HttpEndpointTest, CallersThatSayLittleOrNothingKeepNobodyWaiting) {
  Registry registry;
  HttpEndpoint endpoint(registry);
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  std::vector<int> slow;
  for (int i = 0; i < 40; ++i) slow.push_back(Connect(endpoint.port()));
  for (size_t i = 0; i < slow.size(); i += 2) Send(slow[i], "GET /hea");
  EXPECT_THAT(Get(endpoint.port(), "/healthz"), StartsWith("HTTP/1.1 200"));
  for (size_t i = 0; i < slow.size(); i += 2) {
    Send(slow[i], "lthz HTTP/1.1\r\n\r\n");
    EXPECT_THAT(Receive(slow[i]), StartsWith("HTTP/1.1 200"));
  }
  for (const int fd : slow) close(fd);
}

TEST(HttpEndpointTest, MoreConnectionsThanItKeepsCostTheSilentOnesTheirs) {
  Registry registry;
  HttpEndpoint endpoint(registry, {.connections = 4});
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  std::vector<int> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(Connect(endpoint.port()));
  EXPECT_THAT(Get(endpoint.port(), "/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(Receive(silent.front()), "") << "it is closed";
  for (const int fd : silent) close(fd);
}

TEST(HttpEndpointTest, ACallerWhoNeverEndsItsRequestIsLeftAfterATime) {
  Registry registry;
  HttpEndpoint endpoint(registry, {.to_ask = std::chrono::milliseconds(50)});
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  const int fd = Connect(endpoint.port());
  // A byte now and then would put off a limit on silence for ever.
  for (int i = 0; i < 1000; ++i) {
    if (send(fd, "G", 1, MSG_NOSIGNAL) != 1) break;
    pollfd closed = {.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&closed, 1, 10) == 1) break;
  }
  char byte;
  EXPECT_LE(recv(fd, &byte, 1, MSG_DONTWAIT), 0) << "closed, without an answer";
  close(fd);
}

TEST(HttpEndpointTest, ACallerWhoDoesNotReadTheAnswerKeepsNobodyWaiting) {
  Registry registry;
  HttpEndpoint endpoint(registry, {.in_all = std::chrono::milliseconds(100)});
  endpoint.Handle("/large", [](const HttpRequest&) {
    return HttpResponse{.body = std::string(size_t{64} << 20, 'x')};
  });
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  const int fd = Connect(endpoint.port());
  Send(fd, "GET /large HTTP/1.1\r\n\r\n");
  EXPECT_THAT(Get(endpoint.port(), "/healthz"), StartsWith("HTTP/1.1 200"));
  pollfd gone = {.fd = fd, .events = POLLRDHUP, .revents = 0};
  EXPECT_EQ(poll(&gone, 1, 10'000), 1) << "it is left, its answer half read";
  close(fd);
}

TEST(HttpEndpointTest, ARequestThatNeverEndsIsRefused) {
  Registry registry;
  HttpEndpoint endpoint(registry);
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  const int fd = Connect(endpoint.port());
  Send(fd, "GET /healthz HTTP/1.1\r\nX: " + std::string(20'000, 'x'));
  EXPECT_THAT(Receive(fd), StartsWith("HTTP/1.1 431"));
  close(fd);
}

TEST(HttpEndpointTest, OtherMethodsAndNonsenseAreAnsweredWithAnError) {
  Registry registry;
  HttpEndpoint endpoint(registry);
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  for (const char* request : {"POST /healthz HTTP/1.1\r\nContent-Length: 5\r\n\r\n", "\r\n\r\n",
                              "DELETE / HTTP/1.1\r\n\r\n", "nonsense\r\n\r\n"}) {
    const int fd = Connect(endpoint.port());
    Send(fd, request);
    EXPECT_THAT(Receive(fd), StartsWith("HTTP/1.1 4")) << request;
    close(fd);
  }
}

TEST(HttpEndpointTest, APortOfProbesAloneServesNoMetrics) {
  HttpEndpoint probes;
  ASSERT_TRUE(probes.Start("127.0.0.1", 0).ok());
  EXPECT_THAT(Get(probes.port(), "/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(probes.port(), "/readyz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(probes.port(), "/metrics"), StartsWith("HTTP/1.1 404"));
}

// A cluster without IPv4 gives the pod no other address.
TEST(HttpEndpointTest, AllAddressesAreThoseOfIpv6Too) {
  for (const char* all : {"", "0.0.0.0", "::"}) {
    HttpEndpoint endpoint;
    ASSERT_TRUE(endpoint.Start(all, 0).ok());
    EXPECT_THAT(Get(endpoint.port(), "/healthz"), StartsWith("HTTP/1.1 200")) << all;
    const int fd = ConnectIpv6(endpoint.port());
    if (fd < 0) GTEST_SKIP() << "this machine has no ::1: IPv6 is NOT TESTED";
    Send(fd, "GET /healthz HTTP/1.1\r\n\r\n");
    EXPECT_THAT(Receive(fd), StartsWith("HTTP/1.1 200")) << all;
    close(fd);
  }
}

TEST(HttpEndpointTest, AnUnknownAddressIsNamed) {
  HttpEndpoint endpoint;
  EXPECT_THAT(endpoint.Start("no-such-host.invalid", 0).message(),
              HasSubstr("cannot listen on no-such-host.invalid port 0"));
}

TEST(HttpEndpointTest, StopsRightAfterStart) {
  Registry registry;
  for (int i = 0; i < 20; ++i) {
    HttpEndpoint endpoint(registry);
    ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  }
}

}  // namespace
}  // namespace hetero::metrics
