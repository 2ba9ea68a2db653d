// What the live page costs the head of a job of 500 CPU workers with ten viewers: the share of a
// core that the page's own threads take, beside the same without viewers, and the bytes a second
// that each viewer gets.
//   live_page_bench [WORKERS [VIEWERS [SECONDS]]]
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "runtime/process/report_page.h"
#include "tests/integration/page/played_job.h"

namespace {

using hetero::base::Clock;

// CPU seconds of the threads of these names.
double SecondsOf(const std::vector<std::string>& names) {
  double ticks = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const size_t begin = text.find('('), end = text.rfind(')');
    const std::string name = text.substr(begin + 1, end - begin - 1);
    bool wanted = false;
    for (const std::string& one : names) wanted = wanted || one == name;
    if (!wanted) continue;
    char state = 0;
    unsigned long user = 0, system = 0;
    if (std::sscanf(text.c_str() + end + 2, "%c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                    &state, &user, &system) == 3) {
      ticks += static_cast<double>(user + system);
    }
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::abort();
  const std::string request = "GET /live/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
  if (send(fd, request.data(), request.size(), 0) < 0) std::abort();
  return fd;
}

struct Viewer {
  int fd = -1;
  size_t bytes = 0;
  size_t whole = 0;  // bytes up to the first change
  std::jthread reader;
};

}  // namespace

int main(int count, char** arguments) {
  const auto number = [&](int at, int otherwise) {
    return count > at ? std::atoi(arguments[at]) : otherwise;
  };
  const int workers = number(1, 500), viewers = number(2, 10), seconds = number(3, 30);
  hetero::played::PlayedJob job(workers);
  job.PlaySeconds(200);
  auto page = hetero::process::ReportPage::Open("127.0.0.1:0", job);
  if (!page.ok()) return 1;
  const auto play = [&](int times) {
    for (int i = 0; i < times; ++i) {
      Clock::Real().SleepFor(std::chrono::seconds(1));
      job.PlaySeconds(1);
    }
  };
  const double before = SecondsOf({"events", "http"});
  play(5);
  const double idle = (SecondsOf({"events", "http"}) - before) / 5;
  std::vector<Viewer> all(static_cast<size_t>(viewers));
  for (Viewer& viewer : all) {
    viewer.fd = Connect((*page)->port());
    viewer.reader = std::jthread([&viewer] {
      std::array<char, 65536> bytes;
      std::string start;
      for (ssize_t got = 0; (got = recv(viewer.fd, bytes.data(), bytes.size(), 0)) > 0;) {
        viewer.bytes += static_cast<size_t>(got);
        if (viewer.whole != 0) continue;
        start.append(bytes.data(), static_cast<size_t>(got));
        const size_t change = start.find("event: change");
        if (change != std::string::npos) viewer.whole = change;
      }
    });
  }
  play(3);
  const double begun = SecondsOf({"events", "http"});
  const size_t bytes = all.front().bytes;
  play(seconds);
  const double share = (SecondsOf({"events", "http"}) - begun) / seconds;
  const double rate = static_cast<double>(all.front().bytes - bytes) / seconds;
  std::printf(
      "%d workers, %d viewers: %.2f %% of a core (without viewers %.2f %%); the whole %.0f kB, "
      "then %.1f kB/s "
      "each\n",
      workers, viewers, share * 100, idle * 100, static_cast<double>(all.front().whole) / 1e3,
      rate / 1e3);
  for (Viewer& viewer : all) shutdown(viewer.fd, SHUT_RDWR);
  for (Viewer& viewer : all) {
    viewer.reader.join();
    close(viewer.fd);
  }
  return 0;
}
