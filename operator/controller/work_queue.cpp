#include "operator/controller/work_queue.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "operator/controller/queue_metrics.h"

namespace hetero::controller {
namespace {

constexpr base::Duration kUnfinishedWorkPeriod = std::chrono::milliseconds(500);

}  // namespace

struct WorkQueue::Impl {
  // What waits of one group, in the order in which it was added.
  struct Group {
    std::deque<std::string> quick;
    std::deque<std::string> slow;
    size_t processing = 0, slow_processing = 0;  // the latter among the former
    bool empty() const { return quick.empty() && slow.empty(); }
    std::deque<std::string>& Of(bool is_slow) { return is_slow ? slow : quick; }
  };
  struct Turn {
    Group* group = nullptr;  // null: there is none
    bool slow = false;
    std::deque<std::string>::iterator place = {};  // of the group's name in its order
  };

  Impl(const std::string& name, base::Clock& queue_clock, metrics::Registry& registry,
       RateLimiter::Options limits, Sharing given)
      : clock(queue_clock), sharing(std::move(given)), metrics(name, registry), limiter(limits) {
    sharing.slow_at_once = std::max<size_t>(1, sharing.slow_at_once);
  }

  std::string GroupOf(const std::string& key) const {
    return sharing.group_of == nullptr ? std::string() : sharing.group_of(key);
  }

  void AddLocked(const std::string& key, base::Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (shut_down || !dirty.emplace(key, now).second) return;
    metrics.adds.Add();
    metrics.depth.Add(1);
    if (processing.contains(key)) return;  // Done() will queue it
    PushLocked(key);
  }

  void PushLocked(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const std::string name = GroupOf(key);
    const bool is_slow = slow.contains(key);
    std::deque<std::string>& queue = groups[name].Of(is_slow);
    if (queue.empty()) TurnsOf(is_slow).push_back(name);
    queue.push_back(key);
    available.NotifyOne();
  }

  bool MayHaveAnotherLocked(const Group& group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (sharing.group_of == nullptr || shut_down) return true;
    const size_t others = processing.size() - group.processing;
    const size_t left = sharing.workers - std::min(others, sharing.workers);
    return group.processing < (left + 1) / 2;
  }

  // Of the keys of a group with slow ones that wait: whether one of these has waited longest.
  bool SlowIsNextLocked(const Group& group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return group.quick.empty() || dirty.at(group.slow.front()) < dirty.at(group.quick.front());
  }

  std::deque<std::string>& TurnsOf(bool is_slow) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return is_slow ? slow_turns : turns;
  }

  Turn FirstOfLocked(bool is_slow) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (is_slow && slow_processing >= sharing.slow_at_once && !shut_down) return {};
    std::deque<std::string>& order = TurnsOf(is_slow);
    for (auto place = order.begin(); place != order.end(); ++place) {
      Group& group = groups.at(*place);
      if (MayHaveAnotherLocked(group)) return {&group, is_slow, place};
      // It waits for its own quick ones, which end soon: its place is kept, unless quick keys that
      // wait longer are to have it before.
      if (is_slow && group.processing > group.slow_processing && SlowIsNextLocked(group)) return {};
    }
    return {};
  }

  // Of one group's keys the one that waits longer; else a slow one after a quick one and a quick
  // one after a slow one. A group keeps its turn for slow keys, however many quick ones it has.
  Turn NextTurnLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const Turn quick = FirstOfLocked(false), slow_one = FirstOfLocked(true);
    if (quick.group == nullptr || slow_one.group == nullptr) {
      return quick.group == nullptr ? slow_one : quick;
    }
    if (quick.group != slow_one.group) return took_slow ? quick : slow_one;
    return SlowIsNextLocked(*quick.group) ? slow_one : quick;
  }

  std::string TakeLocked(const Turn& turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::deque<std::string>& queue = turn.group->Of(turn.slow);
    std::string key = std::move(queue.front());
    queue.pop_front();
    ++turn.group->processing;
    std::deque<std::string>& order = TurnsOf(turn.slow);
    std::string name = std::move(*turn.place);
    order.erase(turn.place);
    if (!queue.empty()) order.push_back(std::move(name));
    took_slow = turn.slow;
    slow_processing += turn.slow ? 1 : 0;
    turn.group->slow_processing += turn.slow ? 1 : 0;
    return key;
  }

  void LeaveLocked(const std::string& key, bool was_slow) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto group = groups.find(GroupOf(key));
    --group->second.processing;
    group->second.slow_processing -= was_slow ? 1 : 0;
    slow_processing -= was_slow ? 1 : 0;
    if (group->second.empty() && group->second.processing == 0) groups.erase(group);
  }

  void AddAfterLocked(const std::string& key, base::Duration delay, base::Instant now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (shut_down) return;
    if (delay <= base::Duration::zero()) return AddLocked(key, now);
    metrics.retries.Add();
    const base::Instant due =
        delay > base::Instant::max() - now ? base::Instant::max() : now + delay;
    if (const auto known = due_of.find(key); known != due_of.end()) {
      if (known->second <= due) return;
      delayed.erase({known->second, key});
    }
    due_of[key] = due;
    delayed.insert({due, key});
    WakeTimerLocked(due);
  }

  // Also called by readers, so that nobody sees a due key late because the timer's thread is.
  void QueueDueLocked(base::Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    while (!delayed.empty() && delayed.begin()->first <= now) {
      const std::string key = delayed.begin()->second;
      delayed.erase(delayed.begin());
      due_of.erase(key);
      AddLocked(key, now);
    }
  }

  void MeasureLocked(base::Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    base::Duration total{0};
    base::Duration longest{0};
    for (const auto& [key, taken] : processing) {
      total += now - taken.since;
      longest = std::max<base::Duration>(longest, now - taken.since);
    }
    metrics.unfinished_work.Set(base::ToSeconds(total));
    metrics.longest_running.Set(base::ToSeconds(longest));
  }

  // When the timer has something to do next; max: not until told.
  base::Instant NextTimeLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    base::Instant next = delayed.empty() ? base::Instant::max() : delayed.begin()->first;
    if (measuring) next = std::min(next, next_measure);
    return next;
  }

  void WakeTimerLocked(base::Instant by) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (by < timer_until) timer_wake.request_stop();
    timer_changed.NotifyOne();
  }

  void RunTimer() {
    base::SetThreadName("queue timer");
    base::MutexLock lock(mutex);
    while (!shut_down) {
      const base::Instant now = clock.Now();
      QueueDueLocked(now);
      if (measuring && next_measure <= now) {
        MeasureLocked(now);
        measuring = !processing.empty();
        next_measure = now + kUnfinishedWorkPeriod;
      }
      timer_until = NextTimeLocked();
      if (timer_until == base::Instant::max()) {
        timer_changed.Wait(mutex, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
          return shut_down || NextTimeLocked() != base::Instant::max();
        });
        continue;
      }
      timer_wake = std::stop_source();
      const std::stop_token wake = timer_wake.get_token();
      const base::Duration wait = timer_until - now;
      lock.Unlock();
      clock.SleepFor(wait, wake);
      lock.Lock();
    }
  }

  base::Clock& clock;
  Sharing sharing;
  QueueMetrics metrics;

  mutable base::Mutex mutex;
  base::CondVar available;  // groups, slow_processing, shut_down
  // Of keys in `dirty`, not in `processing`; those that have any, or whose keys are processed.
  std::map<std::string, Group> groups ABSL_GUARDED_BY(mutex);
  // Groups that have quick keys, and those that have slow ones, each once.
  std::deque<std::string> turns ABSL_GUARDED_BY(mutex);
  std::deque<std::string> slow_turns ABSL_GUARDED_BY(mutex);
  bool took_slow ABSL_GUARDED_BY(mutex) = false;  // the last key that was handed out is slow
  std::unordered_set<std::string> slow ABSL_GUARDED_BY(mutex);
  size_t slow_processing ABSL_GUARDED_BY(mutex) = 0;
  // To be handed out; since when.
  std::unordered_map<std::string, base::Instant> dirty ABSL_GUARDED_BY(mutex);
  struct Processing {
    base::Instant since;
    bool slow = false;  // as it was taken
  };
  std::unordered_map<std::string, Processing> processing
      ABSL_GUARDED_BY(mutex);  // between Get and Done
  std::set<std::pair<base::Instant, std::string>> delayed ABSL_GUARDED_BY(mutex);
  // Of the keys in `delayed`.
  std::unordered_map<std::string, base::Instant> due_of ABSL_GUARDED_BY(mutex);
  RateLimiter limiter ABSL_GUARDED_BY(mutex);
  bool shut_down ABSL_GUARDED_BY(mutex) = false;

  base::CondVar timer_changed;  // delayed, measuring, shut_down; the timer's idle wait
  base::Instant timer_until ABSL_GUARDED_BY(mutex) = base::Instant::max();
  std::stop_source timer_wake ABSL_GUARDED_BY(mutex);  // ends the timer's sleep
  // Keys are, or were at the last look, being processed.
  bool measuring ABSL_GUARDED_BY(mutex) = false;
  base::Instant next_measure ABSL_GUARDED_BY(mutex);
  std::jthread timer;
};

WorkQueue::WorkQueue(std::string name, base::Clock& clock, metrics::Registry& registry,
                     RateLimiter::Options limits, Sharing sharing)
    : impl_(std::make_unique<Impl>(name, clock, registry, limits, std::move(sharing))) {
  impl_->timer = std::jthread([this] { impl_->RunTimer(); });
}

WorkQueue::WorkQueue(std::string name, base::Clock& clock, metrics::Registry& registry,
                     RateLimiter::Options limits)
    : WorkQueue(std::move(name), clock, registry, limits, Sharing{}) {}

WorkQueue::~WorkQueue() { ShutDown(); }

void WorkQueue::Add(const std::string& key) {
  const base::MutexLock lock(impl_->mutex);
  impl_->AddLocked(key, impl_->clock.Now());
}

void WorkQueue::AddAfter(const std::string& key, base::Duration delay) {
  const base::MutexLock lock(impl_->mutex);
  impl_->AddAfterLocked(key, delay, impl_->clock.Now());
}

void WorkQueue::AddRateLimited(const std::string& key) {
  const base::MutexLock lock(impl_->mutex);
  const base::Instant now = impl_->clock.Now();
  impl_->AddAfterLocked(key, impl_->limiter.When(key, now), now);
}

void WorkQueue::AddAgain(const std::string& key) {
  const base::MutexLock lock(impl_->mutex);
  impl_->AddAfterLocked(key, impl_->limiter.WhenAgain(key), impl_->clock.Now());
}

void WorkQueue::Forget(const std::string& key) {
  const base::MutexLock lock(impl_->mutex);
  impl_->limiter.Forget(key);
}

int WorkQueue::Failures(const std::string& key) const {
  const base::MutexLock lock(impl_->mutex);
  return impl_->limiter.Failures(key);
}

std::optional<std::string> WorkQueue::Get(std::stop_token stop) {
  Impl& impl = *impl_;
  const base::MutexLock lock(impl.mutex);
  impl.QueueDueLocked(impl.clock.Now());
  impl.available.Wait(impl.mutex, stop, [&impl]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(impl.mutex) {
    return impl.NextTurnLocked().group != nullptr || impl.shut_down;
  });
  if (stop.stop_requested()) {
    impl.available.NotifyOne();  // this call may have taken the only notification of a key
    return std::nullopt;
  }
  const Impl::Turn turn = impl.NextTurnLocked();
  if (turn.group == nullptr) return std::nullopt;

  const base::Instant now = impl.clock.Now();
  std::string key = impl.TakeLocked(turn);
  const auto added = impl.dirty.find(key);
  impl.metrics.queue_duration.Observe(base::ToSeconds(now - added->second));
  impl.metrics.depth.Add(-1);
  impl.dirty.erase(added);
  impl.processing.emplace(key, Impl::Processing{.since = now, .slow = turn.slow});
  if (!impl.measuring) {
    impl.measuring = true;
    impl.next_measure = now + kUnfinishedWorkPeriod;
    impl.WakeTimerLocked(impl.next_measure);
  }
  // One that is done may let go on more keys than the one that Done() has told of.
  if (impl.NextTurnLocked().group != nullptr) impl.available.NotifyOne();
  return key;
}

void WorkQueue::Done(const std::string& key) {
  Impl& impl = *impl_;
  const base::MutexLock lock(impl.mutex);
  const auto started = impl.processing.find(key);
  if (started == impl.processing.end()) return;
  impl.metrics.work_duration.Observe(base::ToSeconds(impl.clock.Now() - started->second.since));
  const bool was_slow = started->second.slow;
  impl.processing.erase(started);
  impl.LeaveLocked(key, was_slow);
  // What was held back may go on now.
  if (!impl.turns.empty() || !impl.slow_turns.empty()) impl.available.NotifyOne();
  if (impl.dirty.contains(key)) impl.PushLocked(key);
}

void WorkQueue::SetSlow(const std::string& key, bool slow) {
  const base::MutexLock lock(impl_->mutex);
  if (slow) {
    impl_->slow.insert(key);
  } else {
    impl_->slow.erase(key);
  }
}

void WorkQueue::ShutDown() {
  const base::MutexLock lock(impl_->mutex);
  impl_->shut_down = true;
  impl_->available.NotifyAll();
  impl_->timer_wake.request_stop();
  impl_->timer_changed.NotifyOne();
}

size_t WorkQueue::depth() const {
  const base::MutexLock lock(impl_->mutex);
  impl_->QueueDueLocked(impl_->clock.Now());
  size_t keys = 0;
  for (const auto& [name, group] : impl_->groups) keys += group.quick.size() + group.slow.size();
  return keys;
}

}  // namespace hetero::controller
