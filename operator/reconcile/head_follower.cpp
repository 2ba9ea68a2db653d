#include "operator/reconcile/head_follower.h"

#include <map>
#include <utility>

#include "base/backoff.h"
#include "base/grpc_lifetime.h"
#include "base/log.h"
#include "base/mutex.h"
#include "operator/reconcile/followed_head.h"
#include "operator/reconcile/head_limits.h"
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

// Whether a stream to `old` that takes the status of so many processes can go on for `now`: only
// the job's size has changed, and its messages still fit.
bool StreamServes(const plan::HeadTarget& old, int64_t takes, plan::HeadTarget now) {
  const bool fits = StatusMessageLimit(now.processes) <= StatusMessageLimit(takes);
  now.replicas = old.replicas;
  now.processes = old.processes;
  return fits && now == old;
}

// `first`: since the head was last heard for a while. A warning each time would be its to fill the
// log with.
void LogStreamEnd(const std::string& key, const grpc::Status& status, bool first) {
  if (first && status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
    log::Warning("a head sends a larger status than its job can have; look at the head's image",
                 {{"job", key}, {"error", status.error_message()}});
  } else {
    log::Debug("a head's status stream ended", {{"job", key}, {"error", status.error_message()}});
  }
}

}  // namespace

struct HeadFollower::Impl : public std::enable_shared_from_this<HeadFollower::Impl> {
  struct Entry {
    plan::HeadTarget target;
    std::shared_ptr<FollowedHead> known;
    uint64_t serial = 0;  // of the target: callbacks of earlier ones are passed over
    int64_t takes = 0;    // a status of so many processes, since it was dialled
    base::Backoff backoff{kRedial};
    base::Instant dialled;
    std::shared_ptr<HeadStream> stream;
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
  void Warn(const std::string& key, const plan::WarnHead& warn);
  using Done = std::function<void(std::shared_ptr<void> keep, const grpc::Status&)>;
  struct Call {
    std::function<void(HeadStream&, const Done&)> start;
    std::function<void(FollowedHead&, uint64_t serial)> started;  // may be empty
    // On a thread of gRPC's; may be empty.
    std::function<void(const grpc::Status&, FollowedHead&, uint64_t serial)> heard;
  };
  // One call beside the stream, if there is a head; `what` it is about, for the log.
  void Tell(const std::string& key, const char* what, const Call& call) ABSL_LOCKS_EXCLUDED(mutex);
  // The stream to the head; null: there is none now.
  HeadStream* Callable(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Dial(const std::string& key, uint64_t serial);
  void Heard(const std::string& key, uint64_t serial, const v1::JobStatus& status);
  void Ended(const std::string& key, uint64_t serial, std::shared_ptr<HeadStream> stream,
             const grpc::Status& status);
  void CheckLost(const std::string& key, uint64_t serial);
  void AnnounceLate(const std::string& key, uint64_t serial);
  void Close();
  std::shared_ptr<FollowedHead> Known(const std::string& key);

  // Null: another target is followed by now, or none.
  Entry* Find(const std::string& key, uint64_t serial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Null: there is nothing to do for it.
  std::shared_ptr<FollowedHead> KnownTo(const std::string& key, uint64_t serial);
  // Makes a new entry, with what is known of the job's run so far, and gives that.
  std::shared_ptr<FollowedHead> Replace(const std::string& key, const plan::HeadTarget& target,
                                        uint64_t& serial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Drop(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void DialLater(const std::string& key, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void CallEnded(std::shared_ptr<void> call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void LetGo(std::shared_ptr<void> thing);
  void Announce(const std::string& key) ABSL_LOCKS_EXCLUDED(mutex) { changed(key); }

  base::Clock& clock;
  const Changed changed;
  std::optional<metrics::Gauge> open_streams;

  // All jobs wait for it: what takes time with a large job happens under that job's own lock, which
  // is never taken while this one is held.
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

std::shared_ptr<FollowedHead> HeadFollower::Impl::KnownTo(const std::string& key, uint64_t serial) {
  const base::MutexLock lock(mutex);
  Entry* entry = closing ? nullptr : Find(key, serial);
  return entry == nullptr ? nullptr : entry->known;
}

std::shared_ptr<FollowedHead> HeadFollower::Impl::Known(const std::string& key) {
  const base::MutexLock lock(mutex);
  const auto it = entries.find(key);
  return it == entries.end() ? nullptr : it->second.known;
}

void HeadFollower::Impl::LetGo(std::shared_ptr<void> thing) {
  if (thing != nullptr) timer.After(base::Duration::zero(), [thing = std::move(thing)] {});
}

void HeadFollower::Impl::CallEnded(std::shared_ptr<void> call) {
  LetGo(std::move(call));
  --calls;
  call_ended.NotifyAll();
}

void HeadFollower::Impl::Drop(Entry& entry) {
  if (entry.stream != nullptr) entry.stream->Cancel();
  LetGo(std::move(entry.stream));
}

std::shared_ptr<FollowedHead> HeadFollower::Impl::Replace(const std::string& key,
                                                          const plan::HeadTarget& target,
                                                          uint64_t& serial) {
  std::shared_ptr<FollowedHead> known;
  if (const auto it = entries.find(key); it != entries.end()) {
    Entry& old = it->second;
    Drop(old);
    // The same run with another head: what the old one said still counts.
    if (target.job_uid == old.target.job_uid && target.attempt == old.target.attempt) {
      known = old.known;
    }
    entries.erase(it);
  }
  if (known == nullptr) {
    known = std::make_shared<FollowedHead>(clock, JobNameOf(key), target.attempt);
  }
  serial = ++last_serial;
  entries.try_emplace(
      key, Entry{.target = target, .known = known, .serial = serial, .takes = target.processes});
  return known;
}

void HeadFollower::Impl::Follow(const std::string& key,
                                const std::optional<plan::HeadTarget>& target) {
  std::shared_ptr<FollowedHead> known;
  uint64_t serial = 0;  // of a new entry
  {
    const base::MutexLock lock(mutex);
    const auto it = entries.find(key);
    if (closing) return;
    if (!target) {
      if (it == entries.end()) return;
      Drop(it->second);
      entries.erase(it);
      return;
    }
    if (it != entries.end() && *target == it->second.target) return;
    if (it != entries.end() && StreamServes(it->second.target, it->second.takes, *target)) {
      it->second.target = *target;
      known = it->second.known;
    } else {
      known = Replace(key, *target, serial);
    }
  }
  if (serial == 0) return known->Resize(*target);
  known->Begin(serial, *target);
  timer.After(base::Duration::zero(), [this, key, serial] { Dial(key, serial); });
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
  entry->dialled = clock.Now();
  entry->takes = target.processes;
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
      *std::move(channel), clock, target.processes,
      {.heard = [self, key, serial](const v1::JobStatus& s) { self->Heard(key, serial, s); },
       .later = [self](base::Duration wait,
                       std::function<void()> call) { self->timer.After(wait, std::move(call)); },
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
  std::shared_ptr<FollowedHead> known;
  {
    const base::MutexLock lock(mutex);
    Entry* entry = closing ? nullptr : Find(key, serial);
    if (entry == nullptr) return;
    known = entry->known;
    // One that speaks and hangs up at once is no success: each dial costs a handshake.
    if (clock.Now() - entry->dialled >= kRedial.max) entry->backoff.Reset();
  }
  const FollowedHead::News news = known->Heard(serial, status);
  if (news.check_lost_after) {
    timer.After(*news.check_lost_after, [this, key, serial] { CheckLost(key, serial); });
  }
  if (!news.announce_after) return;
  if (*news.announce_after == base::Duration::zero()) return Announce(key);
  timer.After(*news.announce_after, [this, key, serial] { AnnounceLate(key, serial); });
}

void HeadFollower::Impl::CheckLost(const std::string& key, uint64_t serial) {
  const std::shared_ptr<FollowedHead> known = KnownTo(key, serial);
  if (known != nullptr && known->CheckLost(serial)) Announce(key);
}

void HeadFollower::Impl::AnnounceLate(const std::string& key, uint64_t serial) {
  const std::shared_ptr<FollowedHead> known = KnownTo(key, serial);
  if (known != nullptr && known->AnnounceLate(serial)) Announce(key);
}

void HeadFollower::Impl::Ended(const std::string& key, uint64_t serial,
                               std::shared_ptr<HeadStream> stream, const grpc::Status& status) {
  if (open_streams) open_streams->Add(-1);
  const std::shared_ptr<FollowedHead> known = KnownTo(key, serial);
  const std::optional<FollowedHead::End> end =
      known == nullptr ? std::nullopt : known->Ended(serial);
  if (end) {
    const base::MutexLock lock(mutex);
    if (Entry* entry = closing ? nullptr : Find(key, serial); entry != nullptr) {
      LogStreamEnd(key, status, entry->backoff.attempts() == 0);
      LetGo(std::move(entry->stream));
      entry->stream = nullptr;
      // A head whose job has ended has said all, and its pod goes; another pod is another target.
      if (!end->has_verdict) DialLater(key, *entry);
    }
  }
  if (end && end->was_connected) Announce(key);
  const base::MutexLock lock(mutex);
  CallEnded(std::move(stream));
}

void HeadFollower::Impl::Tell(const std::string& key, const char* what, const Call& call) {
  const std::shared_ptr<FollowedHead> known = Known(key);
  const bool connected = known != nullptr && known->connected();
  const base::MutexLock lock(mutex);
  HeadStream* stream = connected ? Callable(key) : nullptr;
  if (stream == nullptr) return log::Info("no head to tell", {{"job", key}, {"what", what}});
  ++calls;
  const uint64_t serial = entries.at(key).serial;
  const auto done = [self = shared_from_this(), key, what, serial, known, heard = call.heard](
                        std::shared_ptr<void> kept, const grpc::Status& status) {
    if (!status.ok()) {
      log::Warning("a head could not be told",
                   {{"job", key}, {"what", what}, {"error", status.error_message()}});
    }
    if (heard) heard(status, *known, serial);
    const base::MutexLock self_lock(self->mutex);
    self->CallEnded(std::move(kept));
  };
  call.start(*stream, done);
  if (call.started) call.started(*known, serial);
}

void HeadFollower::Impl::ReportExit(const std::string& key, const plan::ReportExit& exit) {
  Tell(key, "the end of a process",
       {.start = [&](HeadStream& stream, const Done& done) { stream.ReportExit(exit, done); }});
}

void HeadFollower::Impl::Stop(const std::string& key, const plan::StopHead& stop) {
  Tell(key, "to stop its job",
       {.start = [&](HeadStream& stream, const Done& done) { stream.Stop(stop, done); },
        .heard =
            [](const grpc::Status& status, FollowedHead& known, uint64_t serial) {
              if (status.ok()) known.ToldToEnd(serial);
            }});
}

void HeadFollower::Impl::Warn(const std::string& key, const plan::WarnHead& warn) {
  Tell(
      key, "nodes that are about to go",
      {.start = [&](HeadStream& stream, const Done& done) { stream.Warn(warn, done); },
       .started = [&](FollowedHead& known, uint64_t serial) { known.Warned(serial, warn.notices); },
       .heard =
           [](const grpc::Status& status, FollowedHead& known, uint64_t serial) {
             const bool unknown = status.error_code() == grpc::StatusCode::UNIMPLEMENTED;
             if (unknown) known.TakesNoWarning(serial);
           }});
}

HeadStream* HeadFollower::Impl::Callable(const std::string& key) {
  const auto it = entries.find(key);
  const bool callable = !closing && it != entries.end();
  return callable ? it->second.stream.get() : nullptr;
}

void HeadFollower::Impl::Close() {
  base::MutexLock lock(mutex);
  closing = true;
  for (auto& [key, entry] : entries) Drop(entry);
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
  const std::shared_ptr<FollowedHead> known = impl_->Known(key);
  if (known == nullptr) return std::nullopt;
  return known->report();
}

void HeadFollower::ReportExit(const std::string& key, const plan::ReportExit& exit) {
  impl_->ReportExit(key, exit);
}

void HeadFollower::Stop(const std::string& key, const plan::StopHead& stop) {
  impl_->Stop(key, stop);
}

void HeadFollower::Warn(const std::string& key, const plan::WarnHead& warn) {
  impl_->Warn(key, warn);
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
