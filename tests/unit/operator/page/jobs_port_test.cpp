#include "operator/page/jobs_port.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>

#include "operator/page/page.h"
#include "tests/unit/operator/page/observed_jobs.h"

namespace hetero::jobs_page {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// One who asks, with a plain socket.
class Visitor {
 public:
  Visitor(int port, const std::string& request) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    send(fd_, request.data(), request.size(), MSG_NOSIGNAL);
  }
  ~Visitor() { close(fd_); }
  Visitor(const Visitor&) = delete;

  // Up to and with `end` (empty: until the connection ends), or until nothing has come for 10 s.
  std::string ReadTo(const std::string& end) {
    std::string text;
    while (end.empty() || text.find(end) == std::string::npos) {
      std::array<char, 4096> bytes;
      const ssize_t count = recv(fd_, bytes.data(), bytes.size(), 0);
      if (count <= 0) break;
      text.append(bytes.data(), static_cast<size_t>(count));
    }
    return text;
  }

 private:
  const int fd_;
};

class Port : public ::testing::Test {
 protected:
  Port() { EXPECT_TRUE(port_.Start("127.0.0.1", 0).ok()); }

  std::string Get(const std::string& path, const std::string& host = "localhost:8082") {
    return Visitor(port_.port(), "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
        .ReadTo("");
  }

  kube::Store<plan::ObservedJob> store_;
  std::atomic<int> looks_ = 0;
  JobsPort port_{store_, base::Clock::Real(), [this] { return ++looks_ > 0; }};
};

TEST_F(Port, ThePageRunsNothingButItsOwn) {
  const std::string answer = Get("/");
  EXPECT_THAT(
      answer,
      AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("<h1>All jobs</h1>"),
            HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'sha256-"),
            HasSubstr("X-Content-Type-Options: nosniff"), Not(HasSubstr("Access-Control-Allow"))));
  EXPECT_THAT(PageText(), AllOf(Not(HasSubstr("<!-- S")), Not(HasSubstr("innerHTML")),
                                Not(HasSubstr("https://"))))
      << "it needs nobody else";
}

TEST_F(Port, OtherNamesAreRefused) {
  for (const char* path : {"/", "/events", "/healthz"}) {
    EXPECT_THAT(Get(path, "rebound.example.com"), StartsWith("HTTP/1.1 403")) << path;
  }
  EXPECT_THAT(Get("/", "127.0.0.1:8082"), StartsWith("HTTP/1.1 200"));
}

TEST_F(Port, NothingCanBeDoneByIt) {
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH"}) {
    const std::string request =
        std::string(method) + " / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    EXPECT_THAT(Visitor(port_.port(), request).ReadTo(""), Not(StartsWith("HTTP/1.1 2"))) << method;
  }
}

TEST_F(Port, WhoLooksIsToldOfAllJobsAndOfChanges) {
  EXPECT_EQ(looks_, 0) << "nobody looks";
  store_.Put({"team", "vit"},
             std::make_shared<const plan::ObservedJob>(TrainingJob("team", "vit")));
  Visitor visitor(port_.port(), "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string whole = visitor.ReadTo("event: whole\ndata: {");
  EXPECT_THAT(whole, HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(whole + visitor.ReadTo("\n\n"), HasSubstr("\"team/vit\":{"));
  EXPECT_GT(looks_, 0);
  plan::ObservedJob job = TrainingJob("team", "vit");
  job.resource_version = "2";
  job.status.progress->step = 401;
  store_.Put({"team", "vit"}, std::make_shared<const plan::ObservedJob>(std::move(job)));
  EXPECT_THAT(visitor.ReadTo("401,1000"),
              HasSubstr("event: change\ndata: {\"jobs\":{\"team/vit\":{\"figures\":["));
}

}  // namespace
}  // namespace hetero::jobs_page
