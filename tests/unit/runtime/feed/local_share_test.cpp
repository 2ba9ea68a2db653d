// The own cores' share beside CPU workers, in simulated time.
#include "runtime/feed/local_share.h"

#include <gtest/gtest.h>

#include <map>

#include "runtime/feed/window.h"

namespace hetero::feed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// One trainer, some workers and its own cores; every producer works on one ticket after the other.
class Race {
 public:
  struct Options {
    LocalShare share = LocalShare::kBalanced;
    std::map<ProducerId, int> milliseconds_per_batch;  // kLocalProducer: the own cores
    int step_milliseconds = 1;                         // training's own
  };
  explicit Race(Options options)
      : options_(std::move(options)),
        window_({.tickets = int64_t{1} << 40,
                 .byte_budget = 16,
                 .batch_bytes = 1,
                 .local = Window::Local::kLastResort}) {
    for (const auto& [id, unused] : options_.milliseconds_per_batch) {
      if (id == kLocalProducer) continue;
      Perform(window_.Apply(Window::WorkerAdded{id}, Now()));
      Perform(window_.Apply(Window::StreamUp{id}, Now()));
    }
  }

  // Steps of training in so much time.
  int64_t Run(base::Duration duration) {
    const int64_t before = steps_;
    const auto end = now_ + std::chrono::duration_cast<milliseconds>(duration).count();
    for (; now_ < end; ++now_) Millisecond();
    return steps_ - before;
  }
  void SetSpeed(ProducerId id, int per_batch) { options_.milliseconds_per_batch[id] = per_batch; }
  int64_t served(ProducerId id) const {
    const auto found = served_.find(id);
    return found == served_.end() ? 0 : found->second;
  }

 private:
  base::Instant Now() const { return base::Instant(milliseconds(100'000 + now_)); }

  void Perform(const Window::Actions& actions) {
    for (const auto& [id, ticket, guarded] : actions.cancel) std::erase(queues_[id], ticket);
    for (const auto& [id, ticket, guarded] : actions.issue) queues_[id].push_back(ticket);
  }

  // As TicketClient does it.
  void Tick() {
    Perform(window_.Apply(Window::Tick{}, Now()));
    if (options_.share == LocalShare::kLastResort) return;
    const bool shares = rule_.Shares({.waited = waited_ * 1e-3,
                                      .consumed = steps_,
                                      .worker_rate = window_.worker_rate(),
                                      .late = window_.waits_for_late_local()},
                                     Now());
    const auto mode = shares ? Window::Local::kShares : Window::Local::kLastResort;
    Perform(window_.Apply(Window::LocalChanged{mode}, Now()));
  }

  void Millisecond() {
    for (const auto& [id, per_batch] : options_.milliseconds_per_batch) Work(id, per_batch);
    if (now_ % 25 == 0) Tick();
    if (now_ < busy_until_) return;
    if (window_.head_state() != Window::HeadState::kFilled) {
      waited_ += 1;
      return;
    }
    Perform(window_.Apply(Window::Consumed{}, Now()));
    ++steps_;
    busy_until_ = now_ + options_.step_milliseconds;
  }

  void Work(ProducerId id, int per_batch) {
    if (doing_.contains(id)) {
      if (now_ - began_[id] < per_batch) return;
      const int64_t ticket = doing_[id];
      doing_.erase(id);
      ++served_[id];
      Perform(window_.Apply(
          Window::Arrived{
              .producer = id, .ticket = ticket, .bytes = 1, .work = milliseconds(per_batch)},
          Now()));
    }
    if (queues_[id].empty()) return;
    doing_[id] = queues_[id].front();
    queues_[id].erase(queues_[id].begin());
    began_[id] = now_;
    Perform(window_.Apply(Window::Started{id, doing_[id]}, Now()));
  }

  Options options_;
  Window window_;
  LocalShareRule rule_;
  int64_t now_ = 0;
  int64_t busy_until_ = 0;
  int64_t steps_ = 0;
  double waited_ = 0;  // milliseconds
  std::map<ProducerId, std::vector<int64_t>> queues_;
  std::map<ProducerId, int64_t> doing_, began_, served_;
};

TEST(LocalShare, AddsItsRateToTheWorkers) {
  Race::Options options{.milliseconds_per_batch = {{kLocalProducer, 200}, {1, 100}, {2, 100}}};
  Race together(options);
  options.share = LocalShare::kLastResort;
  Race alone(options);
  const int64_t with = together.Run(seconds(60));
  const int64_t without = alone.Run(seconds(60));
  EXPECT_NEAR(static_cast<double>(without), 1200, 30);
  EXPECT_NEAR(static_cast<double>(with), 1500, 60);
  EXPECT_LE(alone.served(kLocalProducer), 2);  // before a worker was there
}

TEST(LocalShare, RestsWhileTheWorkersKeepUp) {
  Race race({.milliseconds_per_batch = {{kLocalProducer, 30}, {1, 20}, {2, 20}},
             .step_milliseconds = 40});
  race.Run(seconds(60));
  EXPECT_LE(race.served(kLocalProducer), 2);  // before a worker was there
}

TEST(LocalShare, EndsWhenTheWorkersHaveBecomeFastEnough) {
  Race race({.milliseconds_per_batch = {{kLocalProducer, 100}, {1, 100}}, .step_milliseconds = 40});
  race.Run(seconds(30));
  EXPECT_GT(race.served(kLocalProducer), 100);
  race.SetSpeed(1, 20);
  race.Run(seconds(10));
  const int64_t served = race.served(kLocalProducer);
  race.Run(seconds(60));
  EXPECT_EQ(race.served(kLocalProducer), served);
}

TEST(LocalShare, SlowCoresAreLeftAlone) {
  // A hundredth of what the workers do: its batches would only be waited for.
  Race::Options options{.milliseconds_per_batch = {{kLocalProducer, 5000}, {1, 50}, {2, 50}}};
  Race together(options);
  options.share = LocalShare::kLastResort;
  Race alone(options);
  const auto with = static_cast<double>(together.Run(seconds(120)));
  const auto without = static_cast<double>(alone.Run(seconds(120)));
  EXPECT_GE(with, 0.95 * without);
}

TEST(LocalShare, CoresThatTrainingTakesBackCostLittle) {
  Race race({.milliseconds_per_batch = {{kLocalProducer, 100}, {1, 100}}});
  EXPECT_NEAR(static_cast<double>(race.Run(seconds(60))), 1200, 60);
  race.SetSpeed(kLocalProducer, 20'000);
  race.Run(seconds(30));
  EXPECT_GE(static_cast<double>(race.Run(seconds(60))), 0.95 * 600);
}

LocalShareRule::View View(double waited, int64_t consumed, double worker_rate, bool late = false) {
  return {.waited = waited, .consumed = consumed, .worker_rate = worker_rate, .late = late};
}

base::Instant At(double second) { return base::Instant(base::FromSeconds(1000 + second)); }

TEST(LocalShareRule, BeginsWhenTrainingWaitsAndEndsWhenWorkersSuffice) {
  LocalShareRule rule;
  EXPECT_FALSE(rule.Shares(View(0, 0, 10), At(0)));
  EXPECT_FALSE(rule.Shares(View(0.04, 10, 10), At(1)));
  EXPECT_TRUE(rule.Shares(View(0.10, 20, 10), At(2)));
  // What is missing to a tenth more than training takes is still worth having.
  for (int second = 3; second < 20; ++second) {
    EXPECT_TRUE(rule.Shares(View(0.10, 10 * second, 10.5), At(second)));
  }
  EXPECT_TRUE(rule.Shares(View(0.10, 200, 12), At(20)));
  EXPECT_TRUE(rule.Shares(View(0.10, 210, 12), At(21)));
  EXPECT_FALSE(rule.Shares(View(0.10, 220, 12), At(22)));
}

TEST(LocalShareRule, RestsLongerEachTimeItWasLate) {
  LocalShareRule rule;
  double waited = 0;
  double now = 0;
  double rest = base::ToSeconds(LocalShareRule::kFirstRest);
  rule.Shares(View(0, 0, 1), At(0));
  for (int i = 0; i < 4; ++i) {
    bool shares = false;
    while (!shares) shares = rule.Shares(View(waited += 0.5, 0, 1), At(++now));
    EXPECT_FALSE(rule.Shares(View(waited, 0, 1, /*late=*/true), At(now)));
    const double began = now;
    while (!rule.Shares(View(waited += 0.5, 0, 1), At(++now))) {
    }
    EXPECT_GE(now - began, rest);
    EXPECT_LE(now - began, rest + 2);
    rule.Shares(View(waited, 0, 1, /*late=*/true), At(now));
    rest *= 4;
    if (rest > 60) break;
  }
}

}  // namespace
}  // namespace hetero::feed
