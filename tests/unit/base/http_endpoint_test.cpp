#include "base/http_endpoint.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "base/clock.h"

namespace hetero::metrics {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
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
std::string Get(int port, const std::string& path) {
  const int fd = Connect(port);
  if (fd < 0) return "not connected";
  Send(fd, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
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

TEST(HttpEndpointTest, TakenPortIsNamed) {
  Registry registry;
  HttpEndpoint first(registry), second(registry);
  ASSERT_TRUE(first.Start("127.0.0.1", 0).ok());
  const absl::Status status = second.Start("127.0.0.1", first.port());
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr("127.0.0.1 port " + std::to_string(first.port())));
  EXPECT_THAT(status.message(), HasSubstr("Address already in use"));
}

TEST(HttpEndpointTest, StreamEndsByItself) {
  Registry registry;
  HttpEndpoint endpoint(registry);
  endpoint.HandleStream("/events", "text/event-stream", [] {
    return [left = 2](std::stop_token) mutable -> std::optional<std::string> {
      if (left == 0) return std::nullopt;
      return "data: " + std::to_string(left--) + "\n\n";
    };
  });
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  const std::string response = Get(endpoint.port(), "/events");
  EXPECT_THAT(response, HasSubstr("Content-Type: text/event-stream\r\n"));
  EXPECT_THAT(response, HasSubstr("data: 2\n\n"));
  EXPECT_THAT(response, HasSubstr("data: 1\n\n"));
  EXPECT_THAT(response, EndsWith("0\r\n\r\n"));
}

TEST(HttpEndpointTest, StopEndsOpenStreamsAndClosesThePort) {
  Registry registry;
  HttpEndpoint endpoint(registry);
  endpoint.HandleStream("/events", "text/event-stream", [] {
    return [first = true](std::stop_token stop) mutable -> std::optional<std::string> {
      if (!std::exchange(first, false)) {
        base::Clock::Real().SleepFor(std::chrono::hours(1), stop);
        return std::nullopt;
      }
      return "data: begin\n\n";
    };
  });
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  const int fd = Connect(endpoint.port());
  Send(fd, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(Receive(fd, "begin\n\n"), EndsWith("data: begin\n\n"));
  const int port = endpoint.port();
  endpoint.Stop();
  Receive(fd);
  close(fd);
  EXPECT_EQ(Get(port, "/healthz"), "not connected");
  endpoint.Stop();
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
