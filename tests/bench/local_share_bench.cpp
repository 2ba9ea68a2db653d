// What the own cores' share of the preprocessing brings and costs. Training is an emulated GPU: a
// little work of its thread, then a pause. Two comparisons in one run, alternating:
//  - step time without waiting for data, with the own cores at work beside it and without: the
//    training thread must keep its priority;
//  - batches per second, with and without them.
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "base/log.h"
#include "tests/bench/feed_rig.h"
#include "tests/bench/pairs.h"

namespace {

using namespace hetero;
using Clock = std::chrono::steady_clock;

constexpr int kPairs = 20;
constexpr int kSteps = 30;
constexpr double kTarget = 1.02;

volatile uint64_t sink = 0;

void Compute(int thousands) {
  uint64_t x = sink + 1;
  for (int i = 0; i < 1000 * thousands; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
  sink = x;
}

struct Result {
  double step_seconds = 0;  // median, without the wait
  double batches_per_second = 0;
};

Result Run(feed::LocalShare share) {
  const auto slow_worker = [] { std::this_thread::sleep_for(std::chrono::milliseconds(10)); };
  bench::FeedRig rig({.workers = {slow_worker, slow_worker},
                      .local = [] { Compute(3000); },
                      .share = share,
                      .local_threads = static_cast<int>(std::thread::hardware_concurrency())});
  for (int i = 0; i < 10; ++i) rig.Next();
  std::vector<double> steps;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < kSteps; ++i) {
    rig.Next();
    const Clock::time_point before = Clock::now();
    Compute(2000);
    std::this_thread::sleep_for(std::chrono::milliseconds(8));
    steps.push_back(std::chrono::duration<double>(Clock::now() - before).count());
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return {bench::Median(steps), kSteps / seconds};
}

}  // namespace

int main() {
  log::Init("bench", log::Level::kError);
  std::vector<double> step_ratios, rate_ratios;
  for (int pair = 0; pair < kPairs; ++pair) {
    const bool first = pair % 2 == 0;
    const Result a = Run(first ? feed::LocalShare::kBalanced : feed::LocalShare::kLastResort);
    const Result b = Run(first ? feed::LocalShare::kLastResort : feed::LocalShare::kBalanced);
    const Result& with = first ? a : b;
    const Result& without = first ? b : a;
    step_ratios.push_back(with.step_seconds / without.step_seconds);
    rate_ratios.push_back(with.batches_per_second / without.batches_per_second);
  }
  const double step = bench::Median(step_ratios);
  std::printf("own cores share: step time x%.3f (target <= %.2f: %s), batches per second x%.2f\n",
              step, kTarget, step <= kTarget ? "met" : "not met", bench::Median(rate_ratios));
}
