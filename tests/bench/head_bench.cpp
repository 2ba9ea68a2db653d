// What members cost the head: CPU time for a second of a job in which each says one heartbeat.
// First its decisions alone: members and their words are played in the same process
// (tests/integration/page/played_job.h), and what it takes to play them is in it. Then the whole
// head, which the members of another process have dialled.
//   head_bench [SECONDS [WORKERS]]
#include <grpcpp/create_channel.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "hetero/v1/membership.grpc.pb.h"
#include "runtime/head/keepalive.h"
#include "runtime/head/server.h"
#include "tests/bench/child_process.h"
#include "tests/integration/page/played_job.h"

namespace hetero::bench {
namespace {

constexpr auto kSecond = std::chrono::seconds(1);

double Megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1000;
}

struct Use {
  double cpu_seconds = 0, megabytes = 0;
  int64_t members = 0;
};

// Says its address, and answers each byte of `questions` with a Use.
void Head(int workers, int out, int questions) {
  mallopt(M_TRIM_THRESHOLD, 4 << 20);  // as RunHead() does
  auto head = head::Server::Start({.job = played::JobOf(workers),
                                   .listen_address = "127.0.0.1:0",
                                   .tls = {.plain_text = true},
                                   .created = base::Clock::Real().WallNow()},
                                  base::Clock::Real());
  if (!head.ok()) {
    std::fprintf(stderr, "%s\n", head.status().ToString().c_str());
    std::abort();
  }
  dprintf(out, "%s\n", (*head)->address().c_str());
  for (char c = 0; read(questions, &c, 1) == 1;) {
    const Use use = {CpuSeconds(), Megabytes(), (*head)->status().members_size()};
    if (write(out, &use, sizeof use) != sizeof use) break;
  }
  _exit(0);  // without the job's end
}

// A member that says what it is told to.
class Stream : public grpc::ClientBidiReactor<v1::MemberMessage, v1::HeadMessage> {
 public:
  explicit Stream(const std::string& address)
      : channel_(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), Alone())),
        stub_(v1::Membership::NewStub(channel_)) {
    stub_->async()->Join(&context_, this);
    AddHold();
    StartRead(&heard_);
    StartCall();
  }
  // Nothing while the one before is being written.
  void Say(v1::MemberMessage message) {
    if (writing_.exchange(true)) return;
    said_ = std::move(message);
    StartWrite(&said_);
  }
  void OnWriteDone(bool) override { writing_ = false; }
  void OnReadDone(bool ok) override {
    if (ok) StartRead(&heard_);
  }

 private:
  static grpc::ChannelArguments Alone() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, head::kKeepaliveTimeMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, head::kKeepaliveTimeoutMs);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    return arguments;
  }

  grpc::ClientContext context_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Membership::Stub> stub_;
  std::atomic<bool> writing_ = false;
  v1::MemberMessage said_;
  v1::HeadMessage heard_;
};

v1::MemberMessage Beat(int64_t second) {
  v1::MemberMessage message;
  v1::Heartbeat& beat = *message.mutable_heartbeat();
  beat.mutable_counters()->set_samples(second * 100);
  beat.mutable_counters()->set_batches(second * 2);
  beat.mutable_counters()->set_cpu_seconds(static_cast<double>(second) * 7);
  for (int half = 0; half < 2; ++half) {
    v1::ResourcePoint& point = *beat.add_resources();
    point.set_unix_ns(base::Clock::Real().WallNow().time_since_epoch().count());
    point.set_seconds(0.5);
    point.set_cores(16);
    v1::ThreadGroupUse& group = *point.add_groups();
    group.set_group("pipeline");
    group.set_cpu_seconds(7);
    group.set_threads(16);
    point.set_rss_bytes(int64_t{900} << 20);
    point.set_core_busy(std::string(16, '\x7f'));
  }
  return message;
}

void Members(const std::string& address, int workers) {
  std::vector<std::unique_ptr<Stream>> members;
  const auto join = [&](const std::string& role, int32_t index, int32_t local) {
    v1::MemberMessage message;
    *message.mutable_hello() = head::MakeHello(role, index, local);
    members.push_back(std::make_unique<Stream>(address));
    members.back()->Say(std::move(message));
  };
  for (int32_t i = 0; i < workers; ++i) join("cpu", i, 0);
  for (int32_t i = 0; i < std::max(1, workers / 30); ++i) {
    for (int32_t local = 0; local < played::RanksOf(workers); ++local) join("gpu", i, local);
  }
  std::this_thread::sleep_for(2 * kSecond);
  for (const auto& member : members) {  // the last one opens the generation
    v1::MemberMessage message;
    *message.mutable_ready() = head::MakeReady(100);
    member->Say(std::move(message));
  }
  std::this_thread::sleep_for(2 * kSecond);
  const auto gap = kSecond / static_cast<int64_t>(members.size());
  auto due = std::chrono::steady_clock::now();
  for (int64_t second = 1;; ++second) {
    for (const auto& member : members) {
      member->Say(Beat(second));
      std::this_thread::sleep_until(due += gap);
    }
  }
}

// Of the whole head.
bool MeasureServer(int workers, int seconds) {
  Child head([&](int out, int questions) { Head(workers, out, questions); });
  const std::string address = head.ReadLine();
  Child members([&](int, int) { Members(address, workers); });
  Use before, after;
  std::this_thread::sleep_for(10 * kSecond);
  const bool began = head.Ask(&before, sizeof before);
  std::this_thread::sleep_for(seconds * kSecond);
  const bool answered = began && head.Ask(&after, sizeof after);
  members.Kill();
  head.Kill();
  if (!answered) return false;
  const double share = (after.cpu_seconds - before.cpu_seconds) / seconds;
  std::printf("  %11d  %7lld  %10.3f  %14.1f  %14.0f\n", workers,
              static_cast<long long>(after.members), share,
              1e6 * share / static_cast<double>(after.members), after.megabytes);
  std::fflush(stdout);
  return true;
}

int Main(int seconds, const std::vector<int>& counts) {
  log::Init("head-bench", log::Level::kError);
  const auto heading = [](const char* of) {
    std::printf("head, one heartbeat a second of each member: %s\n", of);
    std::printf("  CPU workers  members  core share  us a heartbeat  peak MB so far\n");
  };
  heading("the whole of it, over plain text");
  for (const int workers : counts) {
    if (!MeasureServer(workers, seconds)) return 1;
  }
  heading("its decisions");
  for (const int workers : counts) {
    played::PlayedJob job(workers);
    job.PlaySeconds(5);
    const double before = CpuSeconds();
    job.PlaySeconds(seconds);
    const double share = (CpuSeconds() - before) / seconds;
    const auto members = static_cast<int>(job.status().members_size());
    std::printf("  %11d  %7d  %10.3f  %14.1f  %14.0f\n", workers, members, share,
                1e6 * share / members, Megabytes());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace hetero::bench

int main(int count, char** arguments) {
  const int seconds = count > 1 ? std::atoi(arguments[1]) : 20;
  return hetero::bench::Main(seconds, count > 2 ? std::vector<int>{std::atoi(arguments[2])}
                                                : std::vector<int>{100, 500, 1580});
}
