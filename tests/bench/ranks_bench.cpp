// One CPU worker that serves 1 to 256 ranks, a real server and real trainers' clients over
// loopback: what a batch costs it, how even its ranks are, and what it holds in memory of frozen
// ones.
//   ranks_bench [SECONDS [RANKS]]
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "runtime/feed/ticket_gate.h"
#include "tests/bench/child_process.h"
#include "tests/bench/feed_rig.h"

namespace hetero::bench {
namespace {

constexpr int64_t kSmallBatch = 16;    // samples of 4 KB
constexpr int64_t kLargeBatch = 2350;  // 9.6 MB
constexpr int64_t kRoom = int64_t{256} << 20;

struct WorkerFigures {
  double cpu_seconds = 0;
  int64_t threads = 0, peak_kib = 0;
};

struct TrainerFigures {
  double cpu_seconds = 0, until_all = 0, seconds = 0;
  int64_t batches = 0, least = 0, most = 0, by_connection = 0;
};

// gRPC must not have been used in a process that forks: both ends are children. This one answers
// each byte that it is sent with its Figures, and ends when there are no more.
template <typename Figures>
class AskedChild : public Child {
 public:
  using Answer = std::function<Figures()>;
  // `body` gets where it says its address, in a line, and what answers until the end.
  explicit AskedChild(const std::function<void(int out, const std::function<void(Answer)>&)>& body)
      : Child([&](int out, int questions) {
          body(out, [&](const Answer& answer) {
            for (char c = 0; read(questions, &c, 1) == 1;) {
              const Figures figures = answer();
              if (write(out, &figures, sizeof figures) != sizeof figures) std::abort();
            }
          });
        }) {}
  ~AskedChild() { StopAndCpuSeconds(); }
  Figures Ask() const {
    Figures figures;
    if (!Child::Ask(&figures, sizeof figures)) {
      std::fprintf(stderr, "a process of the bench ended\n");
      std::exit(1);
    }
    return figures;
  }
};

// The trainers of one process, which take as fast as they can.
class Trainers {
 public:
  Trainers(const std::string& address, int ranks, int64_t batch, int64_t window)
      : producer_([] {}), taken_(static_cast<size_t>(ranks)), begun_(base::Clock::Real().Now()) {
    for (int32_t rank = 0; rank < ranks; ++rank) {
      schedules_.push_back(std::make_unique<job::Schedule>(
          job::Schedule::Options{.training = {.samples = int64_t{1} << 40,
                                              .batch_size_per_worker = batch,
                                              .ranks = ranks,
                                              .epochs = 1}},
          rank));
      clients_.push_back(feed::TicketClient::Start({.rank = rank,
                                                    .byte_budget = int64_t{192} << 20,
                                                    .max_window = window,
                                                    .local_threads = 0,
                                                    .tls = {.plain_text = true}},
                                                   schedules_.back().get(), &producer_,
                                                   base::Clock::Real()));
      clients_.back()->SetRoster({{"cpu-0", address, 1}});
    }
    for (size_t rank = 0; rank < taken_.size(); ++rank) {
      threads_.emplace_back([this, rank](const std::stop_token& stop) {
        while (clients_[rank]->Next(stop).ok()) ++taken_[rank];
      });
    }
    while (Least() == 0) base::Clock::Real().SleepFor(std::chrono::milliseconds(5), {});
    until_all_ = base::ToSeconds(base::Clock::Real().Now() - begun_);
  }

  // Since the last call.
  TrainerFigures Measure() {
    TrainerFigures figures{.cpu_seconds = CpuSeconds() - cpu_before_, .until_all = until_all_};
    const base::Instant now = base::Clock::Real().Now();
    figures.seconds = base::ToSeconds(now - before_);
    std::vector<int64_t> each;
    taken_before_.resize(taken_.size());
    for (size_t rank = 0; rank < taken_.size(); ++rank) {
      const int64_t taken = taken_[rank];
      each.push_back(taken - std::exchange(taken_before_[rank], taken));
      figures.batches += each.back();
      figures.by_connection += clients_[rank]->batches_by_transport().contains("data_connection");
    }
    figures.least = *std::min_element(each.begin(), each.end());
    figures.most = *std::max_element(each.begin(), each.end());
    before_ = now;
    cpu_before_ = CpuSeconds();
    return figures;
  }

 private:
  int64_t Least() const {
    return std::min_element(taken_.begin(), taken_.end(),
                            [](const auto& a, const auto& b) { return a.load() < b.load(); })
        ->load();
  }

  const CostlyProducer producer_;
  std::vector<std::unique_ptr<job::Schedule>> schedules_;
  std::vector<std::unique_ptr<feed::TicketClient>> clients_;
  std::vector<std::atomic<int64_t>> taken_;  // batches, by rank
  std::vector<int64_t> taken_before_;
  double cpu_before_ = 0, until_all_ = 0;
  base::Instant begun_, before_;
  std::vector<std::jthread> threads_;  // end before what they use
};

struct Case {
  int ranks = 1;
  int64_t batch = kSmallBatch;
  int64_t window = 16;
  int64_t room = feed::TicketGate::kNoLimit;
};

AskedChild<WorkerFigures> StartWorker(const Case& one) {
  return AskedChild<WorkerFigures>([&](int out, const auto& answer) {
    const CostlyProducer producer([] {});
    auto server = feed::WorkerServer::Start({.listen_address = "127.0.0.1:0",
                                             .tls = {.plain_text = true},
                                             .name = "cpu-0",
                                             .threads = 2,
                                             .batch_memory_bytes = one.room},
                                            base::Clock::Real());
    if (!server.ok()) std::abort();
    (*server)->SetProducer(&producer);
    dprintf(out, "%s\n", (*server)->address().c_str());
    answer([] { return WorkerFigures{CpuSeconds(), OfStatus("Threads:"), OfStatus("VmHWM:")}; });
  });
}

AskedChild<TrainerFigures> StartTrainers(const Case& one, const std::string& address) {
  return AskedChild<TrainerFigures>([&](int, const auto& answer) {
    Trainers all(address, one.ranks, one.batch, one.window);
    answer([&all] { return all.Measure(); });
  });
}

void Serve(const Case& one, int seconds) {
  const AskedChild<WorkerFigures> worker = StartWorker(one);
  const AskedChild<TrainerFigures> trainers = StartTrainers(one, worker.ReadLine());
  trainers.Ask();  // all have begun
  const WorkerFigures before = worker.Ask();
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const TrainerFigures taken = trainers.Ask();
  const WorkerFigures after = worker.Ask();
  const auto batches = static_cast<double>(taken.batches);
  std::printf("  %5d  %9.0f  %9.0f  %10.0f  %7lld  %8.0f  %7.2f  %9.2f  %5lld\n", one.ranks,
              batches / taken.seconds, 1e6 * (after.cpu_seconds - before.cpu_seconds) / batches,
              1e6 * taken.cpu_seconds / batches, static_cast<long long>(after.threads),
              static_cast<double>(after.peak_kib) / 1024,
              static_cast<double>(taken.least) / static_cast<double>(taken.most), taken.until_all,
              static_cast<long long>(taken.by_connection));
  std::fflush(stdout);
}

// MiB that the worker had at most, whose trainers were stopped with all that they had asked for.
double Freeze(const Case& one, int seconds) {
  const AskedChild<WorkerFigures> worker = StartWorker(one);
  const AskedChild<TrainerFigures> trainers = StartTrainers(one, worker.ReadLine());
  trainers.Ask();
  trainers.Signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const double peak = static_cast<double>(worker.Ask().peak_kib) / 1024;
  trainers.Signal(SIGCONT);
  return peak;
}

int Main(int seconds, int only) {
  log::Init("ranks-bench", log::Level::kError);
  std::printf(
      "one CPU worker, batches of 64 KB\n"
      "  ranks  batches/s  worker us  trainer us  threads  peak MiB  slowest  s until  ranks with\n"
      "                      a batch     a batch               of it  by fastest  all begun  a "
      "data connection\n");
  for (const int ranks : {1, 16, 64, 256}) {
    if (only == 0 || only == ranks) Serve({.ranks = ranks}, seconds);
  }
  if (only != 0) return 0;
  const Case large = {.ranks = 64, .batch = kLargeBatch, .window = 2};
  Case bounded = large;
  bounded.room = kRoom;
  std::printf("64 ranks that are stopped, batches of 9.6 MB: peak MiB of the worker %.0f, ",
              Freeze(large, seconds));
  std::printf("with 256 MiB for batches %.0f\n", Freeze(bounded, seconds));
  return 0;
}

}  // namespace
}  // namespace hetero::bench

int main(int argc, char** argv) {
  return hetero::bench::Main(argc > 1 ? std::atoi(argv[1]) : 5, argc > 2 ? std::atoi(argv[2]) : 0);
}
