#include "operator/reconcile/head_follower.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "base/backoff.h"
#include "base/grpc_lifetime.h"
#include "base/log.h"
#include "operator/reconcile/head_report.h"
#include "operator/reconcile/head_stream.h"
#include "operator/reconcile/timer_thread.h"

namespace hetero::reconcile {
namespace {

constexpr base::Duration kNotifyPeriod = std::chrono::milliseconds(200);
constexpr base::Backoff::Options kRedial = {.initial = std::chrono::milliseconds(200),
                                            .max = std::chrono::seconds(5)};

std::string JobNameOf(const std::string& key) {
  const size_t slash = key.find('/');
  return slash == std::string::npos ? key : key.substr(slash + 1);
}

}  // namespace

struct HeadFollower::Impl : public std::enable_shared_from_this<HeadFollower::Impl> {
  struct Entry {
    Entry(const plan::HeadTarget& target, const std::string& key, uint64_t serial)
        : target(target),
          builder(std::make_unique<HeadReportBuilder>(JobNameOf(key), target.attempt)),
          backoff(kRedial),
          serial(serial) {}

    plan::HeadTarget target;
    std::unique_ptr<HeadReportBuilder> builder;
    base::Backoff backoff;
    uint64_t serial;  // of the target: callbacks of earlier ones are passed over
    std::shared_ptr<HeadStream> stream;
    std::optional<base::Instant> told;
    bool telling_later = false;
  };

  Impl(base::Clock& clock, children::Leaf leaf, Changed changed,
       std::optional<metrics::Gauge> open_streams)
      : clock(clock),
        changed(std::move(changed)),
        open_streams(open_streams),
        leaf(std::move(leaf)),
        timer(clock, "heads") {}

  void Follow(const std::string& key, const std::optional<plan::HeadTarget>& target);
  void ReportExit(const std::string& key, const plan::Effect& effect);
  void Dial(const std::string& key, uint64_t serial);
  void Heard(const std::string& key, uint64_t serial, const v1::JobStatus& status);
  void Ended(const std::string& key, uint64_t serial, std::shared_ptr<HeadStream> stream,
             const grpc::Status& status);
  void CheckLost(const std::string& key, uint64_t serial);
  void Tell(const std::string& key, uint64_t serial);
  void Close();

  // With the mutex held.
  Entry* Find(const std::string& key, uint64_t serial);
  void DialLater(const std::string& key, Entry& entry);
  bool TellNow(const std::string& key, Entry& entry, bool urgent);
  void LetGo(std::shared_ptr<void> thing);
  void CallEnded(std::shared_ptr<void> call);

  base::Clock& clock;
  const Changed changed;  // never called with the mutex held
  std::optional<metrics::Gauge> open_streams;

  mutable std::mutex mutex;  // guards what follows
  children::Leaf leaf;       // shown to heads
  std::condition_variable call_ended;
  std::map<std::string, Entry> entries;
  uint64_t last_serial = 0;
  size_t calls = 0;  // that gRPC is not done with
  bool closing = false;
  TimerThread timer;  // channels are dialled and let go of on its thread only
};

HeadFollower::Impl::Entry* HeadFollower::Impl::Find(const std::string& key, uint64_t serial) {
  const auto it = entries.find(key);
  return it == entries.end() || it->second.serial != serial ? nullptr : &it->second;
}

void HeadFollower::Impl::LetGo(std::shared_ptr<void> thing) {
  if (thing != nullptr) timer.After(base::Duration::zero(), [thing = std::move(thing)] {});
}

void HeadFollower::Impl::CallEnded(std::shared_ptr<void> call) {
  LetGo(std::move(call));
  --calls;
  call_ended.notify_all();
}

void HeadFollower::Impl::Follow(const std::string& key,
                                const std::optional<plan::HeadTarget>& target) {
  const std::lock_guard lock(mutex);
  const auto it = entries.find(key);
  if (closing || (it == entries.end() && !target)) return;
  if (it != entries.end() && target == it->second.target) return;
  std::unique_ptr<HeadReportBuilder> kept;
  if (it != entries.end()) {
    Entry& old = it->second;
    if (old.stream != nullptr) old.stream->Cancel();
    LetGo(std::move(old.stream));
    // The same run with another head: what the old one said still counts.
    if (target && target->job_uid == old.target.job_uid && target->attempt == old.target.attempt) {
      kept = std::move(old.builder);
      kept->Disconnected();
    }
    entries.erase(it);
  }
  if (!target) return;
  Entry& entry = entries.try_emplace(key, *target, key, ++last_serial).first->second;
  if (kept != nullptr) entry.builder = std::move(kept);
  timer.After(base::Duration::zero(), [this, key, serial = entry.serial] { Dial(key, serial); });
}

// On the timer's thread.
void HeadFollower::Impl::Dial(const std::string& key, uint64_t serial) {
  plan::HeadTarget target;
  children::Leaf shown;
  {
    const std::lock_guard lock(mutex);
    const Entry* entry = Find(key, serial);
    if (entry == nullptr || closing) return;
    target = entry->target;
    shown = leaf;
  }
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = DialStatusPort(target, shown);
  const std::lock_guard lock(mutex);
  Entry* entry = Find(key, serial);
  if (entry == nullptr || closing) return;
  if (!channel.ok()) {
    log::Warning("a head's status port cannot be dialled",
                 {{"job", key}, {"error", channel.status().message()}});
    return DialLater(key, *entry);
  }
  ++calls;
  if (open_streams) open_streams->Add(1);
  // Held until the last callback, for which the destructor waits.
  const auto self = shared_from_this();
  entry->stream = HeadStream::Open(
      *std::move(channel),
      {.heard = [self, key, serial](const v1::JobStatus& s) { self->Heard(key, serial, s); },
       .ended =
           [self, key, serial](std::shared_ptr<HeadStream> stream, const grpc::Status& status) {
             self->Ended(key, serial, std::move(stream), status);
           }});
}

void HeadFollower::Impl::DialLater(const std::string& key, Entry& entry) {
  timer.After(entry.backoff.Next(), [this, key, serial = entry.serial] { Dial(key, serial); });
}

void HeadFollower::Impl::Heard(const std::string& key, uint64_t serial,
                               const v1::JobStatus& status) {
  {
    const std::lock_guard lock(mutex);
    Entry* entry = Find(key, serial);
    if (entry == nullptr || closing) return;
    HeadReportBuilder& builder = *entry->builder;
    const bool urgent = builder.Heard(status, clock.Now(), clock.WallNow());
    entry->backoff.Reset();
    if (const auto wait = builder.UntilLost(clock.Now())) {
      timer.After(*wait, [this, key, serial] { CheckLost(key, serial); });
    }
    if (!TellNow(key, *entry, urgent)) return;
  }
  changed(key);
}

void HeadFollower::Impl::CheckLost(const std::string& key, uint64_t serial) {
  {
    const std::lock_guard lock(mutex);
    Entry* entry = Find(key, serial);
    if (entry == nullptr || closing || !entry->builder->UpdateLost(clock.Now())) return;
    entry->told = clock.Now();
  }
  changed(key);
}

bool HeadFollower::Impl::TellNow(const std::string& key, Entry& entry, bool urgent) {
  const base::Instant now = clock.Now();
  if (urgent || !entry.told || now - *entry.told >= kNotifyPeriod) {
    entry.told = now;
    return true;
  }
  if (!std::exchange(entry.telling_later, true)) {
    timer.After(*entry.told + kNotifyPeriod - now,
                [this, key, serial = entry.serial] { Tell(key, serial); });
  }
  return false;
}

void HeadFollower::Impl::Tell(const std::string& key, uint64_t serial) {
  {
    const std::lock_guard lock(mutex);
    Entry* entry = Find(key, serial);
    if (entry == nullptr || closing) return;
    entry->telling_later = false;
    entry->told = clock.Now();
  }
  changed(key);
}

void HeadFollower::Impl::Ended(const std::string& key, uint64_t serial,
                               std::shared_ptr<HeadStream> stream, const grpc::Status& status) {
  if (open_streams) open_streams->Add(-1);
  bool tell = false;
  {
    const std::lock_guard lock(mutex);
    Entry* entry = closing ? nullptr : Find(key, serial);
    if (entry != nullptr) {
      tell = entry->builder->report().connected;
      entry->builder->Disconnected();
      LetGo(std::move(entry->stream));
      entry->stream = nullptr;
      // A head whose job has ended has said all, and its pod goes; another pod is another target.
      if (!entry->builder->report().verdict) DialLater(key, *entry);
      log::Debug("a head's status stream ended", {{"job", key}, {"error", status.error_message()}});
    }
    if (!tell) return CallEnded(std::move(stream));
  }
  changed(key);
  const std::lock_guard lock(mutex);
  CallEnded(std::move(stream));
}

void HeadFollower::Impl::ReportExit(const std::string& key, const plan::Effect& effect) {
  v1::ExitReport report;
  report.set_role(effect.role);
  report.set_index(effect.index);
  report.set_exit_code(effect.exit_code);
  report.set_signal(effect.signal);
  report.set_message(effect.message);
  report.set_replaced(effect.replaced);
  report.set_incarnation(effect.incarnation);
  const std::lock_guard lock(mutex);
  const auto it = entries.find(key);
  if (closing || it == entries.end() || it->second.stream == nullptr ||
      !it->second.builder->report().connected) {
    log::Debug("no head to tell of a process's end",
               {{"job", key}, {"role", effect.role}, {"index", effect.index}});
    return;
  }
  ++calls;
  it->second.stream->ReportExit(
      report,
      [self = shared_from_this(), key](std::shared_ptr<void> call, const grpc::Status& status) {
        if (!status.ok()) {
          log::Warning("a head could not be told of a process's end",
                       {{"job", key}, {"error", status.error_message()}});
        }
        const std::lock_guard self_lock(self->mutex);
        self->CallEnded(std::move(call));
      });
}

void HeadFollower::Impl::Close() {
  std::unique_lock lock(mutex);
  closing = true;
  for (auto& [key, entry] : entries) {
    if (entry.stream == nullptr) continue;
    entry.stream->Cancel();
    LetGo(std::move(entry.stream));
  }
  entries.clear();
  call_ended.wait(lock, [this] { return calls == 0; });
  lock.unlock();
  timer.Finish();
}

HeadFollower::HeadFollower(base::Clock& clock, const OperatorIdentity& identity, Changed changed,
                           std::optional<metrics::Gauge> open_streams) {
  base::KeepGrpcInitialized();
  impl_ = std::make_shared<Impl>(clock, identity.leaf, std::move(changed), open_streams);
}

HeadFollower::~HeadFollower() { impl_->Close(); }

void HeadFollower::Follow(const std::string& key, const std::optional<plan::HeadTarget>& target) {
  impl_->Follow(key, target);
}

std::optional<plan::HeadReport> HeadFollower::Report(const std::string& key) const {
  const std::lock_guard lock(impl_->mutex);
  const auto it = impl_->entries.find(key);
  if (it == impl_->entries.end()) return std::nullopt;
  return it->second.builder->report();
}

void HeadFollower::ReportExit(const std::string& key, const plan::Effect& effect) {
  impl_->ReportExit(key, effect);
}

void HeadFollower::UseCertificate(const children::Leaf& leaf) {
  const std::lock_guard lock(impl_->mutex);
  impl_->leaf = leaf;
}

size_t HeadFollower::streams() const {
  const std::lock_guard lock(impl_->mutex);
  size_t open = 0;
  for (const auto& [key, entry] : impl_->entries) open += entry.stream != nullptr;
  return open;
}

}  // namespace hetero::reconcile
