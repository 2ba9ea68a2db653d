#include "base/event_stream.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/http_endpoint.h"

namespace hetero::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr base::Duration kShort = std::chrono::milliseconds(5);

int Thread(const std::string& name) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    FILE* file = fopen((task.path() / "comm").c_str(), "r");
    if (file == nullptr) continue;
    char text[32] = {};
    if (fgets(text, sizeof text, file) != nullptr && name + "\n" == text) ++count;
    fclose(file);
  }
  return count;
}

// A number that counts up with each change, and the port that serves it.
struct CountingPort {
  explicit CountingPort(EventStream::Limits limits, size_t padding = 0)
      : stream(
            {.whole = [this, padding] { return "whole " + std::to_string(value) + Pad(padding); },
             .change = [this,
                        padding] { return "change " + std::to_string(++value) + Pad(padding); }},
            limits) {
    endpoint.HandleStream("/events", stream);
    EXPECT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  }
  static std::string Pad(size_t padding) { return std::string(padding, '.'); }

  std::atomic<int> value = 0;
  EventStream stream;
  HttpEndpoint endpoint;
};

// One who looks, with a plain socket.
class Browser {
 public:
  explicit Browser(int port,
                   const std::string& request = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    send(fd_, request.data(), request.size(), MSG_NOSIGNAL);
  }
  Browser(Browser&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), read_(std::move(other.read_)) {}
  ~Browser() {
    if (fd_ >= 0) close(fd_);
  }

  // Up to and with `end`, or until the connection ends.
  std::string ReadTo(const std::string& end) {
    size_t found = std::string::npos;
    while ((found = read_.find(end)) == std::string::npos) {
      std::array<char, 65536> bytes;
      const ssize_t count = recv(fd_, bytes.data(), bytes.size(), 0);
      if (count <= 0) return std::exchange(read_, "");
      read_.append(bytes.data(), static_cast<size_t>(count));
    }
    const std::string text = read_.substr(0, found + end.size());
    read_.erase(0, found + end.size());
    return text;
  }
  std::string ReadAll() { return ReadTo("never sent"); }
  // Whether the other end closes within ten seconds, whatever is left to read.
  bool IsLeft() {
    pollfd gone = {.fd = fd_, .events = POLLRDHUP, .revents = 0};
    return poll(&gone, 1, 10'000) == 1;
  }
  void Say(const std::string& text) { send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }

 private:
  int fd_;
  std::string read_;  // and not asked for yet
};

void AwaitViewers(const EventStream& stream, size_t count) {
  const base::Instant limit = base::Clock::Real().Now() + std::chrono::seconds(10);
  while (stream.viewers() != count && base::Clock::Real().Now() < limit) {
    base::Clock::Real().SleepFor(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(stream.viewers(), count);
}

TEST(EventStreamTest, AViewerGetsTheWholeAndThenEachChange) {
  CountingPort port({.interval = kShort});
  Browser browser(port.endpoint.port());
  const std::string head = browser.ReadTo("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, HasSubstr("Content-Type: text/event-stream\r\n"));
  EXPECT_THAT(head, ::testing::Not(HasSubstr("Access-Control")));
  browser.ReadTo("event: ");
  EXPECT_EQ(browser.ReadTo("\n\n"), "whole\ndata: whole 1\n\n");
  EXPECT_EQ(browser.ReadTo("\n\n"), "event: change\ndata: change 2\n\n");
  EXPECT_EQ(browser.ReadTo("\n\n"), "event: change\ndata: change 3\n\n");
}

TEST(EventStreamTest, WhoComesLaterGetsTheWholeThatTheNextChangeFollows) {
  CountingPort port({.interval = kShort});
  Browser first(port.endpoint.port());
  first.ReadTo("change 7\n\n");
  Browser second(port.endpoint.port());
  second.ReadTo("data: whole ");
  const int whole = std::stoi(second.ReadTo("\n"));
  EXPECT_GE(whole, 7);
  second.ReadTo("data: change ");
  EXPECT_EQ(std::stoi(second.ReadTo("\n")), whole + 1);
}

TEST(EventStreamTest, NobodyIsAskedForAnythingWhileNobodyLooks) {
  CountingPort port({.interval = kShort});
  {
    Browser browser(port.endpoint.port());
    browser.ReadTo("change 2\n\n");
  }
  AwaitViewers(port.stream, 0);
  const int before = port.value;
  // There is no event that says "nothing has happened": forty intervals are waited for.
  base::Clock::Real().SleepFor(40 * kShort);
  EXPECT_EQ(port.value, before);
}

TEST(EventStreamTest, ThirtyTwoLookByOneThreadAndTheNextIsToldSo) {
  CountingPort port({.interval = kShort});
  std::vector<Browser> browsers;
  for (int i = 0; i < 32; ++i) {
    browsers.emplace_back(port.endpoint.port());
    browsers.back().ReadTo("event: whole\n");
  }
  EXPECT_EQ(port.stream.viewers(), 32);
  EXPECT_EQ(Thread("events"), 1);
  EXPECT_EQ(Thread("http"), 1);
  Browser refused(port.endpoint.port());
  const std::string answer = refused.ReadAll();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(answer, HasSubstr("32 pages look at this already"));
  for (Browser& browser : browsers) EXPECT_THAT(browser.ReadTo("change"), HasSubstr("whole "));
  browsers.pop_back();
  AwaitViewers(port.stream, 31);
  Browser next(port.endpoint.port());
  EXPECT_THAT(next.ReadTo("\n\n"), StartsWith("HTTP/1.1 200"));
}

TEST(EventStreamTest, WhoDoesNotReadIsDroppedAndTheOthersDoNotWait) {
  CountingPort port({.behind = 3, .interval = kShort}, size_t{1} << 20);
  Browser slow(port.endpoint.port());
  Browser reader(port.endpoint.port());
  for (int i = 0; i < 40; ++i) ASSERT_THAT(reader.ReadTo("\n\n"), HasSubstr("\n")) << i;
  EXPECT_TRUE(slow.IsLeft());
  AwaitViewers(port.stream, 1);
}

TEST(EventStreamTest, WhoTalksWithoutEndIsLeft) {
  CountingPort port({.interval = kShort});
  Browser browser(port.endpoint.port());
  browser.ReadTo("event: whole\n");
  browser.Say(std::string(20'000, 'x'));
  AwaitViewers(port.stream, 0);
}

TEST(EventStreamTest, TheLastChangeReachesAllBeforeTheEnd) {
  CountingPort port({.interval = std::chrono::hours(1)});
  Browser browser(port.endpoint.port());
  browser.ReadTo("whole 1\n\n");
  port.stream.Finish();
  EXPECT_EQ(browser.ReadAll(), "event: change\ndata: change 2\n\n");
  EXPECT_EQ(port.value, 2);
  Browser late(port.endpoint.port());
  EXPECT_THAT(late.ReadTo("\n\nevent: whole\n"), StartsWith("HTTP/1.1 200")) << "as it ended";
  port.stream.Finish();
}

TEST(EventStreamTest, WhoDoesNotReadHoldsUpNoGoodbye) {
  CountingPort port({.interval = std::chrono::hours(1), .goodbye = kShort}, size_t{16} << 20);
  Browser slow(port.endpoint.port());
  slow.ReadTo("event: whole\n");
  port.stream.Finish();
  EXPECT_EQ(port.stream.viewers(), 0);
}

TEST(EventStreamTest, NothingNewIsASignOfLife) {
  EventStream stream({.whole = [] { return "all"; }, .change = [] { return ""; }},
                     {.interval = kShort});
  HttpEndpoint endpoint;
  endpoint.HandleStream("/events", stream);
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  Browser browser(endpoint.port());
  browser.ReadTo("all\n\n");
  EXPECT_EQ(browser.ReadTo("\n\n"), ":\n\n");
}

TEST(EventStreamTest, ATextOfSeveralLinesStaysOneEvent) {
  EventStream stream({.whole = [] { return "one\ntwo"; }, .change = [] { return ""; }},
                     {.interval = kShort});
  HttpEndpoint endpoint;
  endpoint.HandleStream("/events", stream);
  ASSERT_TRUE(endpoint.Start("127.0.0.1", 0).ok());
  Browser browser(endpoint.port());
  browser.ReadTo("event: ");
  EXPECT_EQ(browser.ReadTo("\n\n"), "whole\ndata: one\ndata: two\n\n");
}

TEST(EventStreamTest, NonsenseAndOtherMethodsBecomeNoViewers) {
  CountingPort port({.interval = kShort});
  for (const char* request :
       {"POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "\r\n\r\n",
        "HEAD /events HTTP/1.1\r\nHost: a\r\n\r\n", "GET /events/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "nonsense\r\n\r\n", "GET /event\0s HTTP/1.1\r\n\r\n"}) {
    Browser browser(port.endpoint.port(), request);
    browser.ReadAll();
  }
  Browser endless(port.endpoint.port(), "GET /events HTTP/1.1\r\nX: " + std::string(20'000, 'x'));
  EXPECT_THAT(endless.ReadAll(), StartsWith("HTTP/1.1 431"));
  EXPECT_EQ(port.stream.viewers(), 0);
}

}  // namespace
}  // namespace hetero::metrics
