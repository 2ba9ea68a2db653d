#include "runtime/feed/read_ahead.h"

#include <algorithm>
#include <exception>

#include "base/thread.h"
#include "runtime/feed/thrown.h"

namespace hetero::feed {
namespace {

constexpr size_t kWastedShare = 16;  // of a run, which may have been taken before it is read
constexpr int kMostStretch = 4;      // of a read, by those beside it
constexpr int kMeasuredReads = 8;    // until there is a usual time

// What it holds, which is more than it has where a format has cut a picture out of its record.
int64_t BytesOf(const source::RawSample& sample) {
  return static_cast<int64_t>(sample.bytes.capacity() + sample.fields.capacity() +
                              sample.mask.capacity());
}

}  // namespace

struct ReadAhead::Entry {
  enum class State { kWaiting, kReading, kRead, kGone };
  State state = State::kWaiting;
  bool awaited = false;
  absl::Status status;
  source::RawSample sample;
  int64_t bytes = 0;  // that it holds, once it is read
};

ReadAhead::ReadAhead(const Options& options, Read read, base::Clock& clock)
    : options_(options), read_(std::move(read)), clock_(clock), limit_(options.first_reads) {}

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

std::unique_ptr<ReadAhead::Expected> ReadAhead::Expect(
    job::Split split, const std::vector<source::Dataset::Run>& runs) {
  std::unique_ptr<Expected> expected(new Expected(this));
  used_ = true;
  const base::MutexLock lock(mutex_);
  if (threads_.empty() && !StartThread()) return nullptr;
  for (const source::Dataset::Run& given : runs) {
    Run run{.samples = {}, .bytes = given.bytes};
    for (const int64_t id : given.ids) {
      const Key key(split, id);
      auto entry = std::make_shared<Entry>();
      entries_.emplace(key, entry);
      expected->samples_.emplace_back(key, entry);
      run.samples.emplace_back(key, std::move(entry));
    }
    waiting_.push_back(std::move(run));
  }
  StartThreads();
  wanted_.NotifyAll();
  return expected;
}

bool ReadAhead::StartThread() {
  try {
    threads_.emplace_back([this](const std::stop_token& stop) { Loop(stop); });
    return true;
  } catch (const std::exception&) {
    return false;  // no more threads are allowed here; those that there are do it
  }
}

void ReadAhead::StartThreads() {
  const auto wanted = static_cast<int>(waiting_.size()) - idle_;
  for (int i = 0; i < wanted && static_cast<int>(threads_.size()) < limit_; ++i) {
    if (!StartThread()) return;
  }
}

// By Little's law what has to be underway is the rate at which samples are taken times how long a
// read takes; as long as that is more than there is, they are waited for. Where the network is
// full, more reads only take longer (as TCP Vegas has it), and the first of them comes later.
void ReadAhead::OnStall() {
  const bool longer = usual_time_ > kMostStretch * least_time_;
  if (reading_ < limit_ || limit_ == options_.most_reads || longer) return;
  ++limit_;
  StartThreads();
  wanted_.NotifyOne();
}

void ReadAhead::Measure(base::Duration time) {
  usual_time_ = ++measured_ == 1 ? time : (7 * usual_time_ + time) / 8;
  if (measured_ == kMeasuredReads) least_time_ = usual_time_;
  if (measured_ > kMeasuredReads) least_time_ = std::min(least_time_, usual_time_);
}

bool ReadAhead::MayRead() const {
  return !waiting_.empty() && reading_ < limit_ &&
         held_bytes_ + reading_bytes_ < options_.most_bytes;
}

// What is not known is what others had. The bytes of several samples lie there twice, while they
// are cut out.
int64_t ReadAhead::MemoryFor(const Run& run) const {
  if (run.samples.size() > 1) return std::max(2 * run.bytes, usual_bytes_);
  return std::max(run.bytes, usual_bytes_);
}

// Takes the first run that waits. False: there is nothing to be read in it any more, or it has a
// hole and waits in parts.
bool ReadAhead::StartNext(Run* run) {
  *run = std::move(waiting_.front());
  waiting_.pop_front();
  const size_t all = run->samples.size();
  const size_t gone = std::erase_if(run->samples, [](const auto& sample) {
    return sample.second->state != Entry::State::kWaiting;
  });
  if (run->samples.empty()) return false;
  if (run->samples.size() > 1 && gone * kWastedShare > all) {
    for (auto sample = run->samples.rbegin(); sample != run->samples.rend(); ++sample) {
      waiting_.push_front({.samples = {std::move(*sample)}});
    }
    StartThreads();
    wanted_.NotifyAll();
    return false;
  }
  if (gone > 0 && run->samples.size() == 1) run->bytes = 0;
  for (const auto& [key, entry] : run->samples) entry->state = Entry::State::kReading;
  return true;
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
    Run run;
    if (!StartNext(&run)) continue;
    const int64_t memory = MemoryFor(run);
    ++reading_;
    reading_bytes_ += memory;
    lock.Unlock();
    const base::Instant begin = clock_.Now();
    ReadSamples read = ReadOf(run);
    const base::Duration time = clock_.Now() - begin;
    lock.Lock();
    --reading_;
    reading_bytes_ -= memory;
    if (run.samples.size() == 1) Measure(time);  // of others it says how large they are
    Keep(run, std::move(read));
  }
}

ReadAhead::ReadSamples ReadAhead::ReadOf(const Run& run) const {
  ReadSamples read;
  try {
    std::vector<int64_t> ids;
    for (const auto& [key, entry] : run.samples) ids.push_back(key.second);
    read.samples.resize(ids.size());
    read.statuses = read_(run.samples.front().first.first, ids, absl::MakeSpan(read.samples));
  } catch (...) {
    read = {.samples = {}, .statuses = {}, .thrown = StatusOfThrown()};
  }
  return read;
}

void ReadAhead::Keep(const Run& run, ReadSamples read) {
  const bool whole = read.statuses.size() == run.samples.size();
  bool awaited = false;
  for (size_t i = 0; i < run.samples.size(); ++i) {
    Entry& entry = *run.samples[i].second;
    if (entry.state == Entry::State::kGone) continue;
    entry.status = whole ? std::move(read.statuses[i]) : read.thrown;
    if (whole) entry.sample = std::move(read.samples[i]);
    entry.state = Entry::State::kRead;
    entry.bytes = BytesOf(entry.sample);
    held_bytes_ += entry.bytes;
    usual_bytes_ = (7 * usual_bytes_ + entry.bytes) / 8;
    awaited = awaited || entry.awaited;
  }
  if (awaited) read_done_.NotifyAll();
}

std::optional<absl::Status> ReadAhead::Take(job::Split split, int64_t id,
                                            source::RawSample* sample) {
  if (!used_) return std::nullopt;
  const base::MutexLock lock(mutex_);
  // The oldest of several is read first.
  const auto found = entries_.lower_bound(Key(split, id));
  if (found == entries_.end() || found->first != Key(split, id)) return std::nullopt;
  const std::shared_ptr<Entry> entry = found->second;
  entries_.erase(found);
  if (entry->state != Entry::State::kRead) OnStall();
  if (entry->state == Entry::State::kWaiting) {
    entry->state = Entry::State::kGone;
    return std::nullopt;
  }
  entry->awaited = true;
  read_done_.Wait(mutex_, [&entry] { return entry->state == Entry::State::kRead; });
  held_bytes_ -= entry->bytes;
  std::swap(*sample, entry->sample);
  if (!waiting_.empty()) wanted_.NotifyOne();
  return std::move(entry->status);
}

void ReadAhead::Drop(const Samples& samples) {
  const base::MutexLock lock(mutex_);
  for (const auto& [key, entry] : samples) {
    const auto [first, last] = entries_.equal_range(key);
    const auto found = std::find_if(
        first, last, [&entry = entry](const auto& one) { return one.second == entry; });
    if (found == last) continue;  // taken
    if (entry->state == Entry::State::kRead) held_bytes_ -= entry->bytes;
    entry->state = Entry::State::kGone;
    entries_.erase(found);
  }
  if (!waiting_.empty()) wanted_.NotifyAll();
}

}  // namespace hetero::feed
