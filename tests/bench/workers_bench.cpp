// A trainer with 1 to 500 CPU workers, real servers and a real client over loopback: how many
// threads and how much memory it takes, and what a batch costs it. Workers have nothing to compute.
//   workers_bench [SECONDS [WORKERS]]
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "runtime/feed/ticket_client.h"
#include "runtime/feed/worker_server.h"
#include "runtime/job/schedule.h"
#include "tests/bench/child_process.h"
#include "tests/bench/ready_producer.h"

namespace hetero::bench {
namespace {

constexpr api::ImageShape kShape = {146, 149, 3};  // 65,262 bytes, a sample a batch
constexpr int kServersOfAProcess = 50;

// Each server's address in a line.
void Serve(int servers, int ready, int until) {
  const ReadyProducer producer(kShape);
  std::vector<std::unique_ptr<feed::WorkerServer>> all;
  for (int i = 0; i < servers; ++i) {
    auto server = feed::WorkerServer::Start({.listen_address = "127.0.0.1:0",
                                             .tls = {.plain_text = true},
                                             .name = "cpu-" + std::to_string(i)},
                                            base::Clock::Real());
    if (!server.ok()) {
      std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
      std::abort();
    }
    (*server)->SetProducer(&producer);
    dprintf(ready, "%s\n", (*server)->address().c_str());
    all.push_back(*std::move(server));
  }
  char end;
  (void)!read(until, &end, 1);
}

void Train(const std::vector<std::string>& addresses, int seconds, int out) {
  const ReadyProducer producer(kShape);
  const job::Schedule schedule(
      {.training = {.samples = int64_t{1} << 40, .batch_size_per_worker = 1, .epochs = 1}}, 0);
  const auto client = feed::TicketClient::Start(
      {.byte_budget = int64_t{192} << 20, .local_threads = 0, .tls = {.plain_text = true}},
      &schedule, &producer, base::Clock::Real());
  std::vector<feed::WorkerAddress> roster;
  for (const std::string& address : addresses) {
    roster.push_back({"cpu-" + std::to_string(roster.size()), address, 1});
  }
  client->SetRoster(roster);
  const auto now = [] { return base::Clock::Real().Now(); };
  const auto take = [&](base::Duration span) {
    int64_t batches = 0;
    for (const base::Instant until = now() + span; now() < until; ++batches) {
      if (!client->Next({}).ok()) std::abort();
    }
    return batches;
  };
  take(std::chrono::seconds(5));  // all are connected, and have been measured
  const double cpu = CpuSeconds();
  const int64_t batches = take(std::chrono::seconds(seconds));
  const auto by = client->batches_by_transport();
  dprintf(out, "%ld %.9f %ld %ld %ld\n", static_cast<long>(batches), CpuSeconds() - cpu,
          static_cast<long>(OfStatus("Threads:")), static_cast<long>(OfStatus("VmHWM:") / 1000),
          static_cast<long>(by.contains("data_connection") ? by.at("data_connection") : 0));
}

int Main(int seconds, const std::vector<int>& counts) {
  log::Init("workers-bench", log::Level::kError);
  std::printf("a trainer with many CPU workers, batches of 64 KB\n");
  std::printf("  workers  batches/s  CPU us a batch  threads  peak MB\n");
  for (const int count : counts) {
    std::vector<std::unique_ptr<Child>> servers;
    std::vector<std::string> addresses;
    for (int left = count; left > 0; left -= kServersOfAProcess) {
      const int some = std::min(left, kServersOfAProcess);
      servers.push_back(
          std::make_unique<Child>([some](int ready, int until) { Serve(some, ready, until); }));
      for (int i = 0; i < some; ++i) addresses.push_back(servers.back()->ReadLine());
    }
    Child trainer([&](int ready, int) { Train(addresses, seconds, ready); });
    long batches = 0, threads = 0, megabytes = 0, connected = 0;
    double cpu = 0;
    if (std::sscanf(trainer.ReadLine().c_str(), "%ld %lf %ld %ld %ld", &batches, &cpu, &threads,
                    &megabytes, &connected) != 5 ||
        batches == 0) {
      return 1;
    }
    trainer.StopAndCpuSeconds();
    std::printf("  %7d  %9.0f  %14.1f  %7ld  %7ld%s\n", count,
                static_cast<double>(batches) / seconds, 1e6 * cpu / static_cast<double>(batches),
                threads, megabytes, connected == 0 ? "  (not over data connections)" : "");
    std::fflush(stdout);
    for (const auto& server : servers) server->StopAndCpuSeconds();
  }
  return 0;
}

}  // namespace
}  // namespace hetero::bench

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 10;
  return hetero::bench::Main(
      seconds, argc > 2 ? std::vector<int>{std::atoi(argv[2])} : std::vector<int>{1, 50, 500});
}
