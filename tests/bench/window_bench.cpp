// What a rank's window costs with many workers: the time of an event, in played time. Workers of
// unequal speed make batches; the rank takes each as soon as it can.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <queue>
#include <vector>

#include "runtime/feed/window.h"

namespace hetero::feed {
namespace {

struct Done {
  base::Instant at;
  ProducerId producer;
  int64_t ticket;
  bool operator>(const Done& other) const { return at > other.at; }
};

// Microseconds of real time for an event, with so many workers and a window of so many batches.
double MicrosecondsPerEvent(int workers, int64_t capacity) {
  Window window({.tickets = int64_t{1} << 40,
                 .byte_budget = capacity * 1000,
                 .max_capacity = capacity,
                 .batch_bytes = 1000});
  base::Instant now{};
  std::priority_queue<Done, std::vector<Done>, std::greater<>> done;
  std::vector<base::Instant> free(static_cast<size_t>(workers) + 1, now);
  std::vector<std::vector<int64_t>> cancelled(static_cast<size_t>(workers) + 1);
  int64_t events = 0;
  const auto apply = [&](const Window::Event& event) {
    ++events;
    const Window::Actions actions = window.Apply(event, now);
    for (const auto& cancel : actions.cancel) {
      cancelled[size_t(cancel.producer)].push_back(cancel.ticket);
    }
    for (const auto& issue : actions.issue) {
      const auto one = std::chrono::milliseconds(100 + issue.producer % 50);
      base::Instant& busy_until = free[size_t(issue.producer)];
      busy_until = std::max(busy_until, now) + one;
      done.push({busy_until, issue.producer, issue.ticket});
    }
  };
  for (ProducerId id = 1; id <= workers; ++id) {
    apply(Window::WorkerAdded{id});
    apply(Window::StreamUp{id});
  }
  const auto run = [&](int64_t batches) {
    while (batches > 0) {
      const Done next = done.top();
      done.pop();
      now = next.at;
      std::vector<int64_t>& of_worker = cancelled[size_t(next.producer)];
      if (std::erase(of_worker, next.ticket) > 0) continue;
      apply(Window::Started{next.producer, next.ticket});
      apply(Window::Arrived{.producer = next.producer,
                            .ticket = next.ticket,
                            .bytes = 1000,
                            .work = std::chrono::milliseconds(100)});
      while (window.head_state() == Window::HeadState::kFilled) {
        apply(Window::Consumed{});
        --batches;
      }
    }
  };
  run(2 * workers);
  events = 0;
  const auto begin = std::chrono::steady_clock::now();
  run(2000);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return 1e6 * took.count() / static_cast<double>(events);
}

}  // namespace
}  // namespace hetero::feed

int main() {
  std::printf("window, microseconds for an event (median of 5)\n  workers");
  const std::vector<int64_t> capacities = {20, 200, 1024};
  for (const int64_t capacity : capacities) std::printf("  %5ld batches", long(capacity));
  for (const int workers : {10, 100, 500, 1000}) {
    std::printf("\n  %7d", workers);
    for (const int64_t capacity : capacities) {
      std::vector<double> rounds;
      for (int i = 0; i < 5; ++i) {
        rounds.push_back(hetero::feed::MicrosecondsPerEvent(workers, capacity));
      }
      std::sort(rounds.begin(), rounds.end());
      std::printf("  %13.1f", rounds[rounds.size() / 2]);
      std::fflush(stdout);
    }
  }
  std::printf("\n");
  return 0;
}
