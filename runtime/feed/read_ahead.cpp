#include "runtime/feed/read_ahead.h"

#include <system_error>

#include "base/thread.h"
#include "runtime/feed/thrown.h"

namespace hetero::feed {
namespace {

int64_t BytesIn(const source::RawSample& sample) {
  return static_cast<int64_t>(sample.bytes.size() + sample.fields.size());
}

}  // namespace

ReadAhead::ReadAhead(const Options& options, Read read)
    : options_(options), read_(std::move(read)), limit_(options.first_reads) {}

ReadAhead::~ReadAhead() {
  std::vector<std::jthread> threads;
  {
    const base::MutexLock lock(mutex_);
    waiting_.clear();
    threads.swap(threads_);
  }
  for (std::jthread& thread : threads) thread.request_stop();
}

ReadAhead::Expected::~Expected() { owner_->Drop(samples_); }

std::unique_ptr<ReadAhead::Expected> ReadAhead::Expect(job::Split split,
                                                       const std::vector<int64_t>& ids) {
  std::unique_ptr<Expected> expected(new Expected(this));
  used_ = true;
  const base::MutexLock lock(mutex_);
  for (const int64_t id : ids) {
    const Key key(split, id);
    const auto [entry, is_new] = entries_.try_emplace(key);
    if (!is_new) continue;  // of another ticket, which takes it
    entry->second = std::make_shared<Entry>();
    waiting_.emplace_back(key, entry->second);
    expected->samples_.push_back(key);
  }
  StartThreads();
  wanted_.NotifyAll();
  return expected;
}

void ReadAhead::StartThreads() {
  const auto wanted = static_cast<int>(waiting_.size()) - idle_;
  for (int i = 0; i < wanted && static_cast<int>(threads_.size()) < limit_; ++i) {
    try {
      threads_.emplace_back([this](const std::stop_token& stop) { Loop(stop); });
    } catch (const std::system_error&) {
      return;  // no more threads are allowed here; those that there are do it
    }
  }
}

// By Little's law what has to be underway is the rate at which samples are taken times how long a
// read takes; as long as that is more than there is, they are waited for.
void ReadAhead::OnStall() {
  if (limit_ < options_.most_reads) ++limit_;
  StartThreads();
  if (!waiting_.empty()) wanted_.NotifyAll();
}

// A sample that is being read counts with what others had.
bool ReadAhead::MayRead() const {
  return !waiting_.empty() && reading_ < limit_ &&
         held_bytes_ + reading_ * usual_bytes_ < options_.most_bytes;
}

void ReadAhead::Loop(const std::stop_token& stop) {
  base::SetThreadName("read-ahead");
  base::MutexLock lock(mutex_);
  while (true) {
    ++idle_;
    const bool more = wanted_.Wait(
        mutex_, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return MayRead(); });
    --idle_;
    if (!more) return;
    const auto [key, entry] = waiting_.front();
    waiting_.pop_front();
    if (entry->state != Entry::State::kWaiting) continue;
    entry->state = Entry::State::kReading;
    ++reading_;
    lock.Unlock();
    absl::Status status;
    try {
      status = read_(key.first, key.second, &entry->sample);
    } catch (...) {
      status = StatusOfThrown();
    }
    lock.Lock();
    --reading_;
    if (entry->state == Entry::State::kGone) {
      entry->sample = {};
      continue;
    }
    entry->status = std::move(status);
    entry->state = Entry::State::kRead;
    const int64_t bytes = BytesIn(entry->sample);
    held_bytes_ += bytes;
    usual_bytes_ = (7 * usual_bytes_ + bytes) / 8;
    if (entry->awaited) read_done_.NotifyAll();
  }
}

std::optional<absl::Status> ReadAhead::Take(job::Split split, int64_t id,
                                            source::RawSample* sample) {
  if (!used_) return std::nullopt;
  const base::MutexLock lock(mutex_);
  const auto found = entries_.find(Key(split, id));
  if (found == entries_.end()) return std::nullopt;
  const std::shared_ptr<Entry> entry = found->second;
  entries_.erase(found);
  if (entry->state != Entry::State::kRead) OnStall();
  if (entry->state == Entry::State::kWaiting) {
    entry->state = Entry::State::kGone;
    return std::nullopt;
  }
  entry->awaited = true;
  read_done_.Wait(mutex_, [&entry] { return entry->state == Entry::State::kRead; });
  held_bytes_ -= BytesIn(entry->sample);
  std::swap(*sample, entry->sample);
  if (!waiting_.empty()) wanted_.NotifyOne();
  return std::move(entry->status);
}

void ReadAhead::Drop(const std::vector<Key>& samples) {
  const base::MutexLock lock(mutex_);
  for (const Key& key : samples) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) continue;
    if (found->second->state == Entry::State::kRead) {
      held_bytes_ -= BytesIn(found->second->sample);
    }
    found->second->state = Entry::State::kGone;
    entries_.erase(found);
  }
  if (!waiting_.empty()) wanted_.NotifyAll();
}

}  // namespace hetero::feed
