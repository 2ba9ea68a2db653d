#include "simulation/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/job/permutation.h"

namespace hetero::feed::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr base::Duration kTick = milliseconds(25);  // as TicketClient's
constexpr base::Duration kFaultStep = milliseconds(100);

job::Schedule::Options ScheduleOptions(const World::Options& options, int32_t ranks) {
  return {.training = {.samples = options.samples,
                       .batch_size_per_worker = options.batch_size * options.ranks / ranks,
                       .ranks = ranks,
                       .epochs = options.epochs}};
}

}  // namespace

World::World(Options options)
    : options_(std::move(options)),
      timeline_(options_.tracing),
      dice_(options_.seed),
      start_(timeline_.now()) {
  const size_t ranks = static_cast<size_t>(options_.ranks), count = options_.workers.size();
  dialled_.resize(ranks * count);
  taken_.resize(ranks);
  missing_ = options_.ranks;
  ranks_.resize(ranks);
  for (size_t i = 0; i < count; ++i) MakeWorker(i);
  for (size_t i = 0; i < ranks * count; ++i) {
    links_.push_back(std::make_unique<Link>(&timeline_, &dice_, &options_.weather,
                                            options_.workers[i % count].distance));
  }
  for (int32_t rank = 0; rank < options_.ranks; ++rank) {
    MakeLocal(static_cast<size_t>(rank));
    trainers_.push_back(MakeTrainer(rank, 0));
  }
  if (options_.head) MakeControl();
  for (size_t i = 0; i < count; ++i) {
    const int index = static_cast<int>(i);
    if (std::count(options_.absent.begin(), options_.absent.end(), index) == 0) StartWorker(index);
  }
  Tick();
  if (options_.fault_time > base::Duration(0)) timeline_.After(kFaultStep, [this] { Disturb(); });
}

std::unique_ptr<Trainer> World::MakeTrainer(int32_t rank, int64_t first) {
  const auto at = static_cast<size_t>(rank);
  Trainer::Callbacks callbacks;
  callbacks.issue = [this, at](const Window::Assignment& a) { Send(at, a, /*cancel=*/false); };
  callbacks.cancel = [this, at](const Window::Assignment& a) { Send(at, a, /*cancel=*/true); };
  callbacks.reset = [this, at](ProducerId id) {
    const auto worker = worker_of_.find(id);
    if (worker == worker_of_.end()) return;
    Break(at, worker->second, link(at, worker->second).connection(), microseconds(1));
  };
  callbacks.on_violation = [this](const std::string& what) { Violate(what); };
  return std::make_unique<Trainer>(
      Trainer::Options{.rank = rank,
                       .seed = options_.seed,
                       .first = first,
                       .budget = options_.window * options_.batch_size,
                       .sizes_known = options_.sizes_known,
                       .local = options_.local ? options_.local_mode : Window::Local::kOff,
                       .schedule = ScheduleOptions(options_, options_.ranks)},
      std::move(callbacks), &timeline_);
}

void World::MakeLocal(size_t rank) {
  Worker::Callbacks callbacks;
  callbacks.on_started = [this, rank](const Order& order) {
    trainers_[rank]->Apply(Window::Started{kLocalProducer, order.ticket});
  };
  callbacks.on_done = [this, rank](const Order& order, base::Duration work) {
    if (dice_.Chance(options_.weather.fail_ticket) && trainers_[rank]->MayFail(order.ticket)) {
      trainers_[rank]->Fail(kLocalProducer, order.ticket);
    } else {
      trainers_[rank]->Receive(kLocalProducer, order.ticket, work);
    }
    TakeWhatIsThere();
  };
  locals_.push_back(std::make_unique<Worker>(options_.local.value_or(Worker::Options{}),
                                             std::move(callbacks), &timeline_, &dice_));
  locals_.back()->Start();
}

void World::MakeWorker(size_t index) {
  Worker::Callbacks callbacks;
  callbacks.on_started = [this, index](const Order& order) { Answer(index, order, std::nullopt); };
  callbacks.on_done = [this, index](const Order& order, base::Duration work) {
    Answer(index, order, work);
  };
  workers_.push_back(
      std::make_unique<Worker>(options_.workers[index], std::move(callbacks), &timeline_, &dice_));
}

void World::Send(size_t rank, const Window::Assignment& assignment, bool cancel) {
  const int64_t ticket = assignment.ticket;
  if (assignment.producer == kLocalProducer) {
    // In a later moment: the window must not be entered again while it decides.
    timeline_.After(microseconds(1), [this, rank, ticket, cancel, trainer = trainers_[rank].get()] {
      Worker& local = *locals_[rank];
      trainer->Run(&timeline_, [&local, rank, ticket, cancel, trainer] {
        if (trainer->retired()) return;
        if (cancel) return local.Cancel(static_cast<int32_t>(rank), ticket);
        local.Submit({.trainer = static_cast<int32_t>(rank), .ticket = ticket});
      });
    });
    return;
  }
  const auto found = worker_of_.find(assignment.producer);
  if (found == worker_of_.end()) return;
  Link& line = link(rank, found->second);
  Worker* worker = workers_[found->second].get();
  const Order order{static_cast<int32_t>(rank), line.connection(), ticket};
  line.Send(Link::kToWorker, order.connection, [this, worker, order, cancel] {
    worker->Run(&timeline_, [worker, order, cancel] {
      if (cancel) return worker->Cancel(order.trainer, order.ticket);
      worker->Submit(order);
    });
  });
}

void World::Answer(size_t worker, const Order& order, std::optional<base::Duration> work) {
  const auto rank = static_cast<size_t>(order.trainer);
  const ProducerId id = dialled(rank, worker).id;
  const bool failed = work.has_value() && dice_.Chance(options_.weather.fail_ticket);
  Trainer& trainer = *trainers_[rank];
  link(rank, worker).Send(Link::kToTrainer, order.connection, [=, this, &trainer] {
    trainer.Run(&timeline_, [=, this, &trainer] {
      if (trainer.retired()) return;
      if (!work.has_value()) {
        trainer.Apply(Window::Started{id, order.ticket});
      } else if (failed && trainer.MayFail(order.ticket)) {
        trainer.Fail(id, order.ticket);
      } else {
        trainer.Receive(id, order.ticket, *work);
      }
      TakeWhatIsThere();
    });
  });
}

void World::Tick() {
  for (size_t rank = 0; rank < trainers_.size(); ++rank) {
    Trainer& trainer = *trainers_[rank];
    if (!trainer.frozen(timeline_.now())) trainer.Apply(Window::Tick{});
  }
  TakeWhatIsThere();
  timeline_.After(kTick, [this] { Tick(); });
}

void World::TakeWhatIsThere() {
  if (computing_ || ended_ || !training_) return;
  for (size_t rank = 0; rank < trainers_.size(); ++rank) {
    Trainer& trainer = *trainers_[rank];
    if (taken_[rank] || trainer.frozen(timeline_.now()) || !trainer.CanTake()) continue;
    if (trainer.step() != steps_) Violate(absl::StrCat("rank ", rank, " is not where others are"));
    taken_[rank] = true;
    --missing_;
    trainer.Take();
  }
  if (missing_ > 0) return;
  if (trainers_[0]->AtEnd()) {
    Commit();
    ended_ = true;
    return;
  }
  computing_ = true;
  const base::Duration time = options_.compute + std::exchange(pause_, base::Duration(0));
  timeline_.After(time, [this, stops = stops_] {
    if (stops != stops_) return;
    computing_ = false;
    Commit();
    TakeWhatIsThere();
  });
}

void World::Commit() {
  ++steps_;
  for (const auto& trainer : trainers_) trainer->Commit();
  std::fill(taken_.begin(), taken_.end(), false);
  missing_ = options_.ranks;
}

void World::At(base::Duration time, const Timeline::Action& action) {
  timeline_.At(start_ + time, action);
}

bool World::RunUntil(base::Instant limit) {
  while (!ended() && timeline_.now() < limit) timeline_.RunOne();
  return ended();
}

void World::RunFor(base::Duration time) { RunUntil(timeline_.now() + time); }

bool World::Run(base::Duration limit) {
  if (!RunUntil(timeline_.now() + limit)) {
    violation_ = "the job does not end;";
    for (const auto& trainer : trainers_) {
      absl::StrAppend(&violation_, " step ", trainer->step(), trainer->retired() ? " gone" : "",
                      trainer->window().head_error().ok() ? "" : " failed");
    }
  }
  if (violation_.empty()) Check();
  return violation_.empty();
}

void World::Check() {
  job::StreamDigest consumed, expected;
  for (const auto& trainer : trainers_) consumed += trainer->digest();
  for (const Rank& rank : ranks_) consumed += rank.done;
  const job::Schedule whole(ScheduleOptions(options_, 1), 0);
  for (int64_t step = 0; step < whole.size(); ++step) {
    const job::PlannedBatch plan = whole.At(step);
    const job::Permutation order(options_.seed, plan.epoch, options_.samples, {});
    for (int64_t slot = plan.slots.first; slot < plan.slots.first + plan.slots.count; ++slot) {
      const int64_t sample = order.At(slot);
      expected.Add(options_.seed, plan.epoch, step, slot, sample, SampleCrc(plan.epoch, sample));
    }
  }
  if (consumed.ToHex() != expected.ToHex()) violation_ = "the digest is not that of the plan";
  if (steps_ != whole.size()) violation_ = absl::StrCat(steps_, " steps of ", whole.size());
}

int64_t World::reissued() const {
  int64_t sum = 0;
  for (const auto& trainer : trainers_) sum += trainer->window().reissued();
  return sum;
}

int64_t World::moved() const {
  int64_t sum = 0;
  for (const auto& trainer : trainers_) sum += trainer->window().moved();
  return sum;
}

int64_t World::duplicates() const {
  int64_t sum = 0;
  for (const auto& trainer : trainers_) sum += trainer->window().duplicates();
  return sum;
}

}  // namespace hetero::feed::simulation
