#include "runtime/feed/ticket_intake.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"

namespace hetero::feed {

// Its lock is taken inside those of streams and transports, and around the executor's, which calls
// nobody with its own held. Nobody is called back with this one held.
class TicketIntake::State : public std::enable_shared_from_this<State> {
 public:
  State(TicketExecutor* executor, int64_t most_bytes) : executor_(executor), gate_(most_bytes) {}

  void Close() {
    std::unordered_map<Handle, Asked> dropped;  // destroyed without the lock
    const base::MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(asked_);
  }

  TicketGate::Owner Join() {
    const base::MutexLock lock(mutex_);
    gate_.Join();
    return next_owner_++;
  }

  void Part() {
    const base::MutexLock lock(mutex_);
    gate_.Part();
    ComeBackLater();
  }

  void SetProducer(const BatchProducer* producer) {
    std::vector<TicketExecutor::Handle> taken;
    {
      const base::MutexLock lock(mutex_);
      producer_ = producer;
      executor_->SetProducer(producer);
      for (const Handle handle : std::exchange(early_, {})) {
        const auto asked = asked_.find(handle);
        if (asked != asked_.end()) Ask(handle, &asked->second);
      }
      taken = TakeUp();
    }
    for (const auto handle : taken) executor_->Expect(handle);
  }

  // Until stop: takes up what there has come to be room for.
  void TakeUpLater(const std::stop_token& stop) {
    base::SetThreadName("feed-take-up");
    base::MutexLock lock(mutex_);
    while (room_.Wait(mutex_, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return std::exchange(look_, false);
    })) {
      const std::vector<TicketExecutor::Handle> taken = TakeUp();
      lock.Unlock();
      for (const auto handle : taken) executor_->Expect(handle);
      lock.Lock();
    }
  }

  Handle Submit(TicketGate::Owner owner, const Ticket& ticket,
                TicketExecutor::Callbacks callbacks) {
    std::vector<TicketExecutor::Handle> taken;
    Handle handle = 0;
    {
      const base::MutexLock lock(mutex_);
      handle = next_handle_++;
      Asked& asked = asked_[handle];
      asked = {.owner = owner,
               .ticket = ticket,
               .callbacks = std::move(callbacks),
               .since = executor_->Now()};
      if (producer_ == nullptr) {
        early_.push_back(handle);
      } else {
        Ask(handle, &asked);
        taken = TakeUp();
      }
    }
    for (const auto one : taken) executor_->Expect(one);
    return handle;
  }

  bool Cancel(Handle handle) {
    Asked dropped;  // destroyed without the lock
    const base::MutexLock lock(mutex_);
    const auto found = asked_.find(handle);
    if (found == asked_.end() || closed_) return false;
    Asked& asked = found->second;
    if (asked.taken_up) {
      // Its callbacks go with this lock held: streams cancel their own, and so none is the last of
      // one.
      if (!executor_->Cancel(asked.in_executor)) return false;
      gate_.Release(asked.owner, asked.bytes);
    } else {
      gate_.Withdraw(asked.owner, handle);
    }
    dropped = std::move(asked);
    asked_.erase(found);
    ComeBackLater();
    return true;
  }

 private:
  struct Asked {
    TicketGate::Owner owner = 0;
    Ticket ticket;
    TicketExecutor::Callbacks callbacks;
    base::Instant since;
    int64_t bytes = 0;
    bool taken_up = false;
    TicketExecutor::Handle in_executor = 0;  // meaningful once it is taken up
  };
  // What a batch counts for, until this is gone.
  class Counted {
   public:
    Counted(std::shared_ptr<State> state, TicketGate::Owner owner, int64_t bytes)
        : state_(std::move(state)), owner_(owner), bytes_(bytes) {}
    ~Counted() { state_->Release(owner_, bytes_); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

   private:
    const std::shared_ptr<State> state_;
    const TicketGate::Owner owner_;
    const int64_t bytes_;
  };

  void Ask(Handle handle, Asked* asked) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // What cannot be served fails in the executor, without memory.
    asked->bytes = producer_->Check(asked->ticket).ok() ? producer_->batch_bytes(asked->ticket) : 0;
    gate_.Ask(asked->owner, handle, asked->bytes);
  }

  // Whose Expect() is to be called next, without the lock: it may take long.
  std::vector<TicketExecutor::Handle> TakeUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<TicketExecutor::Handle> taken;
    while (const std::optional<Handle> next = gate_.Next()) {
      Asked& asked = asked_.at(*next);
      asked.taken_up = true;
      TicketExecutor::Callbacks callbacks = std::move(asked.callbacks);
      callbacks.on_done = [state = shared_from_this(), handle = *next,
                           on_done = std::move(callbacks.on_done)](
                              const Ticket& ticket, absl::StatusOr<std::unique_ptr<Batch>> batch) {
        auto counted = state->Done(handle);
        if (batch.ok()) (*batch)->counted = std::move(counted);
        counted.reset();
        on_done(ticket, std::move(batch));
      };
      asked.in_executor = executor_->Queue(asked.ticket, std::move(callbacks), asked.since);
      taken.push_back(asked.in_executor);
    }
    return taken;
  }

  void ComeBackLater() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!gate_.waiting() || std::exchange(look_, true)) return;
    room_.NotifyOne();
  }

  // Null once this is closed.
  std::shared_ptr<const void> Done(Handle handle) {
    const base::MutexLock lock(mutex_);
    const auto found = asked_.find(handle);
    if (found == asked_.end()) return nullptr;
    auto counted =
        std::make_shared<Counted>(shared_from_this(), found->second.owner, found->second.bytes);
    asked_.erase(found);
    return counted;
  }

  void Release(TicketGate::Owner owner, int64_t bytes) {
    const base::MutexLock lock(mutex_);
    gate_.Release(owner, bytes);
    ComeBackLater();
  }

  TicketExecutor* const executor_;  // until this is closed
  base::Mutex mutex_;
  base::CondVar room_;                         // look_
  bool look_ ABSL_GUARDED_BY(mutex_) = false;  // there may be room for what waits
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  const BatchProducer* producer_ ABSL_GUARDED_BY(mutex_) = nullptr;
  TicketGate gate_ ABSL_GUARDED_BY(mutex_);
  TicketGate::Owner next_owner_ ABSL_GUARDED_BY(mutex_) = 1;
  Handle next_handle_ ABSL_GUARDED_BY(mutex_) = 1;
  std::unordered_map<Handle, Asked> asked_ ABSL_GUARDED_BY(mutex_);  // not done
  std::vector<Handle> early_ ABSL_GUARDED_BY(mutex_);                // before there was a producer
};

TicketIntake::TicketIntake(TicketExecutor* executor, int64_t most_bytes)
    : executor_(*executor),
      state_(std::make_shared<State>(executor, most_bytes)),
      later_([this](const std::stop_token& stop) { state_->TakeUpLater(stop); }) {}

TicketIntake::~TicketIntake() {
  later_.request_stop();
  later_.join();
  state_->Close();
}

TicketGate::Owner TicketIntake::Join() { return state_->Join(); }

void TicketIntake::Part() { state_->Part(); }

void TicketIntake::SetProducer(const BatchProducer* producer) { state_->SetProducer(producer); }

TicketIntake::Handle TicketIntake::Submit(TicketGate::Owner owner, const Ticket& ticket,
                                          TicketExecutor::Callbacks callbacks) {
  return state_->Submit(owner, ticket, std::move(callbacks));
}

bool TicketIntake::Cancel(Handle handle) { return state_->Cancel(handle); }

}  // namespace hetero::feed
