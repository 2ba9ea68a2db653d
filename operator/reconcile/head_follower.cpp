#include "operator/reconcile/head_follower.h"

#include <map>
#include <utility>

#include "base/backoff.h"
#include "base/grpc_lifetime.h"
#include "base/log.h"
#include "base/mutex.h"
#include "operator/reconcile/announcement_pacer.h"
#include "operator/reconcile/head_report.h"
#include "operator/reconcile/head_stream.h"
#include "operator/reconcile/timer_thread.h"

namespace hetero::reconcile {
namespace {

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
    AnnouncementPacer pacer;
  };

  Impl(base::Clock& clock, children::Leaf leaf, Changed changed,
       std::optional<metrics::Gauge> open_streams)
      : clock(clock),
        changed(std::move(changed)),
        open_streams(open_streams),
        leaf(std::move(leaf)),
        timer(clock, "heads") {}

  void Follow(const std::string& key, const std::optional<plan::HeadTarget>& target);
  void ReportExit(const std::string& key, const plan::ReportExit& exit);
  void Stop(const std::string& key, const plan::StopHead& stop);
  void Dial(const std::string& key, uint64_t serial);
  void Heard(const std::string& key, uint64_t serial, const v1::JobStatus& status);
  void Ended(const std::string& key, uint64_t serial, std::shared_ptr<HeadStream> stream,
             const grpc::Status& status);
  void CheckLost(const std::string& key, uint64_t serial);
  void AnnounceLate(const std::string& key, uint64_t serial);
  void Close();

  // Null: another target is followed by now, or none.
  Entry* Find(const std::string& key, uint64_t serial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void DialLater(const std::string& key, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Whether the caller is to do it; else it is done later.
  bool AnnounceNow(const std::string& key, Entry& entry, bool urgent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void CallEnded(std::shared_ptr<void> call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void LetGo(std::shared_ptr<void> thing);
  void Announce(const std::string& key) ABSL_LOCKS_EXCLUDED(mutex) { changed(key); }

  base::Clock& clock;
  const Changed changed;
  std::optional<metrics::Gauge> open_streams;

  base::Mutex mutex;
  children::Leaf leaf ABSL_GUARDED_BY(mutex);  // shown to heads
  base::CondVar call_ended;
  std::map<std::string, Entry> entries ABSL_GUARDED_BY(mutex);
  uint64_t last_serial ABSL_GUARDED_BY(mutex) = 0;
  size_t calls ABSL_GUARDED_BY(mutex) = 0;  // that gRPC is not done with
  bool closing ABSL_GUARDED_BY(mutex) = false;
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
  call_ended.NotifyAll();
}

void HeadFollower::Impl::Follow(const std::string& key,
                                const std::optional<plan::HeadTarget>& target) {
  const base::MutexLock lock(mutex);
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
    const base::MutexLock lock(mutex);
    const Entry* entry = Find(key, serial);
    if (entry == nullptr || closing) return;
    target = entry->target;
    shown = leaf;
  }
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = DialStatusPort(target, shown);
  const base::MutexLock lock(mutex);
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
    const base::MutexLock lock(mutex);
    Entry* entry = Find(key, serial);
    if (entry == nullptr || closing) return;
    HeadReportBuilder& builder = *entry->builder;
    const bool urgent = builder.Heard(status, clock.Now(), clock.WallNow());
    entry->backoff.Reset();
    if (const auto wait = builder.UntilLost(clock.Now())) {
      timer.After(*wait, [this, key, serial] { CheckLost(key, serial); });
    }
    if (!AnnounceNow(key, *entry, urgent)) return;
  }
  Announce(key);
}

void HeadFollower::Impl::CheckLost(const std::string& key, uint64_t serial) {
  {
    const base::MutexLock lock(mutex);
    Entry* entry = Find(key, serial);
    if (entry == nullptr || closing || !entry->builder->UpdateLost(clock.Now())) return;
    entry->pacer.Changed(/*urgent=*/true, clock.Now());
  }
  Announce(key);
}

bool HeadFollower::Impl::AnnounceNow(const std::string& key, Entry& entry, bool urgent) {
  const std::optional<base::Duration> wait = entry.pacer.Changed(urgent, clock.Now());
  if (wait == base::Duration::zero()) return true;
  if (wait) timer.After(*wait, [this, key, serial = entry.serial] { AnnounceLate(key, serial); });
  return false;
}

void HeadFollower::Impl::AnnounceLate(const std::string& key, uint64_t serial) {
  {
    const base::MutexLock lock(mutex);
    Entry* entry = Find(key, serial);
    if (entry == nullptr || closing) return;
    entry->pacer.AnnouncedLate(clock.Now());
  }
  Announce(key);
}

void HeadFollower::Impl::Ended(const std::string& key, uint64_t serial,
                               std::shared_ptr<HeadStream> stream, const grpc::Status& status) {
  if (open_streams) open_streams->Add(-1);
  bool tell = false;
  {
    const base::MutexLock lock(mutex);
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
  Announce(key);
  const base::MutexLock lock(mutex);
  CallEnded(std::move(stream));
}

void HeadFollower::Impl::ReportExit(const std::string& key, const plan::ReportExit& exit) {
  const base::MutexLock lock(mutex);
  const auto it = entries.find(key);
  if (closing || it == entries.end() || it->second.stream == nullptr ||
      !it->second.builder->report().connected) {
    log::Debug("no head to tell of a process's end",
               {{"job", key}, {"role", exit.role}, {"index", exit.index}});
    return;
  }
  ++calls;
  it->second.stream->ReportExit(exit, [self = shared_from_this(), key](std::shared_ptr<void> call,
                                                                       const grpc::Status& status) {
    if (!status.ok()) {
      log::Warning("a head could not be told of a process's end",
                   {{"job", key}, {"error", status.error_message()}});
    }
    const base::MutexLock self_lock(self->mutex);
    self->CallEnded(std::move(call));
  });
}

void HeadFollower::Impl::Stop(const std::string& key, const plan::StopHead& stop) {
  const base::MutexLock lock(mutex);
  const auto it = entries.find(key);
  if (closing || it == entries.end() || it->second.stream == nullptr) return;
  ++calls;
  it->second.stream->Stop(stop, [self = shared_from_this(), key, serial = it->second.serial](
                                    std::shared_ptr<void> call, const grpc::Status& status) {
    if (!status.ok()) {
      log::Warning("a head could not be told of its job's end",
                   {{"job", key}, {"error", status.error_message()}});
    }
    const base::MutexLock self_lock(self->mutex);
    Entry* entry = self->Find(key, serial);
    if (status.ok() && entry != nullptr) entry->builder->ToldToEnd();
    self->CallEnded(std::move(call));
  });
}

void HeadFollower::Impl::Close() {
  base::MutexLock lock(mutex);
  closing = true;
  for (auto& [key, entry] : entries) {
    if (entry.stream == nullptr) continue;
    entry.stream->Cancel();
    LetGo(std::move(entry.stream));
  }
  entries.clear();
  call_ended.Wait(mutex, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return calls == 0; });
  lock.Unlock();
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
  const base::MutexLock lock(impl_->mutex);
  const auto it = impl_->entries.find(key);
  if (it == impl_->entries.end()) return std::nullopt;
  return it->second.builder->report();
}

void HeadFollower::ReportExit(const std::string& key, const plan::ReportExit& exit) {
  impl_->ReportExit(key, exit);
}

void HeadFollower::Stop(const std::string& key, const plan::StopHead& stop) {
  impl_->Stop(key, stop);
}

void HeadFollower::UseCertificate(const children::Leaf& leaf) {
  const base::MutexLock lock(impl_->mutex);
  impl_->leaf = leaf;
}

size_t HeadFollower::streams() const {
  const base::MutexLock lock(impl_->mutex);
  size_t open = 0;
  for (const auto& [key, entry] : impl_->entries) open += entry.stream != nullptr;
  return open;
}

}  // namespace hetero::reconcile
