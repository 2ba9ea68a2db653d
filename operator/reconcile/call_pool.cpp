#include "operator/reconcile/call_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/thread.h"

namespace hetero::reconcile {
namespace {

// What an API server answers at once is far less, and a pod may have about a thousand.
constexpr size_t kMostThreads = 256;
constexpr size_t kShared = 224;  // of them; the others help stages that would have no help

}  // namespace

CallPool::CallPool(base::Clock& clock, const CallPace::Settings& pace)
    : clock_(clock), pace_(pace) {}

CallPool::~CallPool() {
  std::vector<std::jthread> threads;
  {
    const base::MutexLock lock(mutex_);
    threads.swap(threads_);
  }
  for (std::jthread& thread : threads) thread.request_stop();
}

bool CallPool::WantsHelp(const Stage& stage) const {
  if (stage.next == stage.count || stage.helpers + 1 >= stage.pace.at_once()) return false;
  if (stage.helpers == 0) return true;
  const size_t of_others = threads_.size() - idle_ - stage.helpers;
  return of_others < kShared && stage.helpers < (kShared - of_others + 1) / 2;
}

std::deque<CallPool::Stage*>::const_iterator CallPool::NextToHelp() const {
  return std::find_if(stages_.begin(), stages_.end(),
                      [this](const Stage* stage)
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return WantsHelp(*stage); });
}

CallPool::Stage* CallPool::TakeTurn() {
  const auto turn = NextToHelp();
  if (turn == stages_.end()) return nullptr;
  Stage* const stage = *turn;
  stages_.erase(turn);
  stages_.push_back(stage);
  return stage;
}

void CallPool::StartThreads() {
  size_t wanted = 0;
  for (const Stage* stage : stages_) {
    const size_t at_once = stage->helpers + 1;
    if (at_once >= stage->pace.at_once()) continue;
    wanted += std::min(stage->count - stage->next, stage->pace.at_once() - at_once);
  }
  try {
    for (; idle_ < wanted && threads_.size() < kMostThreads; ++idle_) {
      threads_.emplace_back([this](std::stop_token stop) { Work(std::move(stop)); });
    }
  } catch (const std::system_error& error) {
    if (std::exchange(warned_, true)) return;
    log::Warning("no more threads for calls to the API server; those that there are go on",
                 {{"threads", threads_.size()}, {"error", error.what()}});
  }
}

void CallPool::Run(size_t count, const std::function<void(size_t)>& call) {
  Stage stage{.call = call, .count = count, .pace = CallPace(pace_)};
  base::MutexLock lock(mutex_);
  stages_.push_back(&stage);
  if (count > 1) StartThreads();
  while (stage.next < stage.count) {
    CallNext(stage);
    ++stage.ended;
  }
  std::erase(stages_, &stage);
  ended_.Wait(mutex_, [&stage] { return stage.ended == stage.count; });
}

void CallPool::CallNext(Stage& stage) {
  const size_t index = stage.next++;
  // The stage of this thread's last call may have one more now.
  if (idle_ > 0 && NextToHelp() != stages_.end()) help_wanted_.NotifyOne();
  mutex_.Unlock();
  const auto begin = clock_.Now();
  stage.call(index);
  const auto took = clock_.Now() - begin;
  mutex_.Lock();
  const size_t before = stage.pace.at_once();
  stage.pace.Ended(took);
  if (stage.pace.at_once() > before && stage.next < stage.count) StartThreads();
}

void CallPool::Work(std::stop_token stop) {
  base::SetThreadName("api-call");
  base::MutexLock lock(mutex_);
  Stage* stage = nullptr;
  const auto turn = [this, &stage]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    stage = TakeTurn();
    return stage != nullptr;
  };
  while (help_wanted_.Wait(mutex_, stop, turn)) {
    ++stage->helpers;
    --idle_;
    CallNext(*stage);
    ++idle_;
    --stage->helpers;
    // Afterwards the stage may be gone.
    if (++stage->ended == stage->count) ended_.NotifyAll();
  }
}

}  // namespace hetero::reconcile
