// Step time with one CPU worker of three at a tenth of the others' speed, over step time without
// it, where the other two cover the demand. Workers sleep, so no core is fought for.
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
constexpr int kSteps = 60;
constexpr double kTarget = 1.2;

std::function<void()> Sleeps(int milliseconds) {
  return [milliseconds] { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); };
}

// Seconds per step: two workers make a batch of four every 10 ms together; training takes 12.
double Run(bool straggler) {
  std::vector<std::function<void()>> workers = {Sleeps(5), Sleeps(5)};
  if (straggler) workers.push_back(Sleeps(50));
  bench::FeedRig rig({.workers = std::move(workers)});
  for (int i = 0; i < 20; ++i) rig.Next();
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < kSteps; ++i) {
    rig.Next();
    std::this_thread::sleep_for(std::chrono::milliseconds(12));
  }
  return std::chrono::duration<double>(Clock::now() - begin).count() / kSteps;
}

}  // namespace

int main() {
  log::Init("bench", log::Level::kError);
  std::vector<double> ratios;
  for (int pair = 0; pair < kPairs; ++pair) {
    const bool first = pair % 2 == 0;
    const double a = Run(first);
    const double b = Run(!first);
    ratios.push_back(first ? a / b : b / a);
  }
  const double ratio = bench::Median(ratios);
  std::printf("straggler at a tenth of the speed: step time x%.3f (target <= %.1f: %s)\n", ratio,
              kTarget, ratio <= kTarget ? "met" : "not met");
}
