// What it costs a process to look at itself and its machine, with 64 threads that wait: CPU time of
// one look, and of two a second as a share of a core.
#include <benchmark/benchmark.h>

#include <chrono>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/thread.h"
#include "hetero/v1/membership.pb.h"
#include "runtime/process/resource_sampler.h"

namespace {

using namespace hetero;

constexpr int kThreads = 64;
constexpr double kLooksPerSecond = 2;

void OneLook(benchmark::State& state) {
  std::latch end(1);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&end, i] {
      base::SetThreadName("make-" + std::to_string(i));
      end.wait();
    });
  }
  process::ResourceSampler sampler({.interval = std::chrono::hours(1)}, base::Clock::Real());
  const base::Duration before = base::ThreadCpuTime();
  for (auto _ : state) {
    v1::Heartbeat heartbeat;
    sampler.Take(/*until_now=*/true, heartbeat);
    benchmark::DoNotOptimize(heartbeat);
  }
  const double used = base::ToSeconds(base::ThreadCpuTime() - before);
  state.counters["of_a_core"] = kLooksPerSecond * used / static_cast<double>(state.iterations());
  end.count_down();
}
BENCHMARK(OneLook)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
