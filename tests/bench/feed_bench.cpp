// The feed from one worker process to one trainer process against a raw socket pair that moves the
// same bytes, in one run. A worker that has nothing to compute: what is measured is tickets,
// frames, checksums and the way through gRPC. Alternating rounds; medians.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "runtime/feed/ticket_client.h"
#include "runtime/feed/transport/grpc_transport.h"
#include "runtime/feed/worker_server.h"
#include "runtime/job/schedule.h"
#include "tests/bench/child_process.h"
#include "tests/bench/ready_producer.h"
#include "tests/unit/base/test_certificates.h"

namespace hetero {
namespace {

using bench::Child;
using bench::CpuSeconds;
using bench::ReadyProducer;

constexpr int64_t kBytesPerRound = int64_t{1500} << 20;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Figures {
  double bytes_per_second = 0;
  double batches_per_second = 0;
  double sender = 0;  // CPU seconds per GB
  double receiver = 0;
};

Figures Result(int64_t bytes, int64_t batches, double seconds, double sender, double receiver) {
  const double gigabytes = static_cast<double>(bytes) * 1e-9;
  return {static_cast<double>(bytes) / seconds, static_cast<double>(batches) / seconds,
          sender / gigabytes, receiver / gigabytes};
}

double Now() { return base::ToSeconds(base::Clock::Real().Now().time_since_epoch()); }

// The same bytes through a plain TCP connection: send() of whole batches, recv() into one buffer.
Figures RawSockets(int64_t batch_bytes, int64_t batches) {
  Child child([&](int ready, int until) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0) std::abort();
    listen(listener, 1);
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    dprintf(ready, "%d\n", ntohs(address.sin_port));
    const int connection = accept(listener, nullptr, nullptr);
    const std::vector<char> batch(static_cast<size_t>(batch_bytes), 0x5A);
    for (int64_t i = 0; i < batches; ++i) {
      for (size_t sent = 0; sent < batch.size();) {
        const ssize_t n = send(connection, batch.data() + sent, batch.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) std::abort();
        sent += static_cast<size_t>(n);
      }
    }
    char end;
    (void)!read(until, &end, 1);
  });
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(child.ReadLine())));
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::abort();
  std::vector<char> batch(static_cast<size_t>(batch_bytes));
  const double cpu = CpuSeconds(), begin = Now();
  for (int64_t i = 0; i < batches; ++i) {
    for (size_t got = 0; got < batch.size();) {
      const ssize_t n = recv(connection, batch.data() + got, batch.size() - got, 0);
      if (n <= 0) std::abort();
      got += static_cast<size_t>(n);
    }
  }
  const double seconds = Now() - begin, receiver = CpuSeconds() - cpu;
  close(connection);
  return Result(batches * batch_bytes, batches, seconds, child.StopAndCpuSeconds(), receiver);
}

// gRPC must not have been used in a process that forks, so both ends are children.
Figures Feed(const std::string& listen, const base::TlsOptions& server_tls,
             const base::TlsOptions& client_tls, api::ImageShape shape, int64_t samples,
             int64_t batches, const feed::Transports& transports = feed::EveryTransport()) {
  Child worker([&](int ready, int until) {
    const ReadyProducer producer(shape);
    auto server = feed::WorkerServer::Start(
        {.listen_address = listen, .tls = server_tls, .name = "cpu-0", .threads = 1},
        base::Clock::Real());
    if (!server.ok()) std::abort();
    (*server)->SetProducer(&producer);
    dprintf(ready, "%s\n", (*server)->address().c_str());
    char end;
    (void)!read(until, &end, 1);
  });
  const std::string address = worker.ReadLine();
  Child trainer([&](int ready, int) {
    const ReadyProducer producer(shape);
    const job::Schedule schedule(
        {.training = {.samples = samples * batches, .batch_size_per_worker = samples, .epochs = 1}},
        0);
    const auto client = feed::TicketClient::Start({.byte_budget = int64_t{40} << 20,
                                                   .local_threads = 0,
                                                   .tls = client_tls,
                                                   .transports = transports},
                                                  &schedule, &producer, base::Clock::Real());
    client->SetRoster({{"cpu-0", address, 1}});
    const auto take = [&client] {
      const auto batch = client->Next({});
      if (batch.ok()) return;
      std::fprintf(stderr, "%s\n", batch.status().ToString().c_str());
      std::abort();
    };
    take();  // connected
    const double cpu = CpuSeconds(), begin = Now();
    for (int64_t i = 1; i < batches; ++i) {
      take();
    }
    dprintf(ready, "%.9f %.9f\n", Now() - begin, CpuSeconds() - cpu);
  });
  double seconds = 0, receiver = 0;
  std::sscanf(trainer.ReadLine().c_str(), "%lf %lf", &seconds, &receiver);
  trainer.StopAndCpuSeconds();
  const int64_t bytes = (batches - 1) * samples * shape.height * shape.width * shape.channels;
  return Result(bytes, batches - 1, seconds, worker.StopAndCpuSeconds(), receiver);
}

// `only`: one case by name; empty: all.
int Main(int rounds, const std::string& only) {
  log::Init("feed-bench", std::getenv("HETERO_LOG") ? log::Level::kDebug : log::Level::kError);
  std::string folder =
      (std::filesystem::temp_directory_path() / "hetero-feed-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::FILE* file = std::fopen((folder + "/" + name).c_str(), "w");
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
    return folder + "/" + name;
  };
  const base::TlsOptions plain = {.plain_text = true};
  base::TlsOptions secure;
  {
    const base::TestAuthority authority;
    const auto leaf = authority.Issue("bench");
    secure.ca_file = write("ca.crt", authority.certificate_pem());
    secure.certificate_file = write("tls.crt", leaf.certificate_pem);
    secure.key_file = write("tls.key", leaf.key_pem);
  }
  const api::ImageShape picture = {224, 224, 3}, small = {146, 149, 3};  // 150,528 and 65,262 bytes
  const int64_t large_bytes = 64 * 224 * 224 * 3, small_bytes = 146 * 149 * 3;
  const int64_t large = kBytesPerRound / large_bytes, many = 30'000;
  const std::string tcp = "127.0.0.1:0", unix_path = "unix:" + folder + "/cpu.sock";
  // Too long for a second socket beside it, over which memory could be shared.
  const std::string sent_path = "unix:" + folder + "/" + std::string(105 - folder.size(), 'x');
  const feed::Transports grpc = {&feed::kGrpcTransport};
  std::map<std::string, std::vector<Figures>> all;
  for (int round = 0; round <= rounds; ++round) {
    const auto add = [&](const std::string& name, const auto& measure) {
      if (!only.empty() && only != name) return;
      const Figures figures = measure();
      if (round > 0) all[name].push_back(figures);  // the first is warm-up
    };
    add("raw", [&] { return RawSockets(large_bytes, large); });
    add("tcp", [&] { return Feed(tcp, plain, plain, picture, 64, large); });
    add("grpc", [&] { return Feed(tcp, plain, plain, picture, 64, large, grpc); });
    add("tls", [&] { return Feed(tcp, secure, secure, picture, 64, large); });
    add("grpc tls", [&] { return Feed(tcp, secure, secure, picture, 64, large, grpc); });
    add("unix", [&] { return Feed(sent_path, plain, plain, picture, 64, large); });
    add("shared", [&] { return Feed(unix_path, plain, plain, picture, 64, large); });
    add("small raw", [&] { return RawSockets(small_bytes, many); });
    add("small", [&] { return Feed(tcp, plain, plain, small, 1, many); });
    add("small grpc", [&] { return Feed(tcp, plain, plain, small, 1, many, grpc); });
    add("small shared", [&] { return Feed(unix_path, plain, plain, small, 1, many); });
  }
  std::filesystem::remove_all(folder);
  const auto median = [&](const std::string& name, double Figures::*what) {
    std::vector<double> values;
    for (const Figures& figures : all[name]) values.push_back(figures.*what);
    return Median(values);
  };
  const auto ratio = [&](const std::string& name, const std::string& base) {
    std::vector<double> values;
    for (size_t i = 0; i < all[name].size(); ++i) {
      values.push_back(all[name][i].bytes_per_second / all[base][i].bytes_per_second);
    }
    return Median(values);
  };
  const auto line = [&](const char* title, const std::string& name, const std::string& base) {
    if (all[name].empty()) return;
    std::printf("feed, %-34s %5.2f GB/s, %.0f batches/s", title,
                median(name, &Figures::bytes_per_second) * 1e-9,
                median(name, &Figures::batches_per_second));
    if (!all[base].empty()) std::printf(", %.2f of %s", ratio(name, base), base.c_str());
    std::printf("; CPU s/GB: sender %.2f, receiver %.2f\n", median(name, &Figures::sender),
                median(name, &Figures::receiver));
  };
  line("raw TCP sockets, 9.6 MB:", "raw", "raw");
  line("TCP, 9.6 MB batches:", "tcp", "raw");
  line("TCP, over gRPC alone:", "grpc", "raw");
  line("TCP with mTLS, 9.6 MB batches:", "tls", "raw");
  line("TCP with mTLS, over gRPC alone:", "grpc tls", "raw");
  line("unix socket, 9.6 MB batches:", "unix", "tcp");
  line("shared memory, 9.6 MB batches:", "shared", "tcp");
  line("TCP, 64 KB batches:", "small", "small raw");
  line("TCP, 64 KB batches, gRPC alone:", "small grpc", "small raw");
  line("shared memory, 64 KB batches:", "small shared", "small");
  std::printf("(medians of %d rounds each)\n", rounds);
  return 0;
}

}  // namespace
}  // namespace hetero

// Arguments: how many rounds, instead of 7; the one case that is to be measured, such as "small".
int main(int argc, char** argv) {
  return hetero::Main(argc > 1 ? std::atoi(argv[1]) : 7, argc > 2 ? argv[2] : "");
}
