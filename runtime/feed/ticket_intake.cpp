#include "runtime/feed/ticket_intake.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace hetero::feed {

// Its lock is taken inside those of streams and transports, and around the executor's. Nobody is
// called back with it held.
class TicketIntake::State : public std::enable_shared_from_this<State> {
 public:
  State(TicketExecutor* executor, int64_t most_bytes) : executor_(executor), gate_(most_bytes) {}

  void Close() {
    std::unordered_map<Handle, Asked> dropped;  // destroyed without the lock
    const base::MutexLock lock(mutex_);
    executor_ = nullptr;
    dropped.swap(asked_);
  }

  void SetProducer(const BatchProducer* producer) {
    const base::MutexLock lock(mutex_);
    producer_ = producer;
    executor_->SetProducer(producer);
    for (const Handle handle : std::exchange(early_, {})) {
      const auto asked = asked_.find(handle);
      if (asked != asked_.end()) Ask(handle, &asked->second);
    }
    TakeUp();
  }

  Handle Submit(TicketGate::Owner owner, const Ticket& ticket,
                TicketExecutor::Callbacks callbacks) {
    const base::MutexLock lock(mutex_);
    const Handle handle = next_handle_++;
    Asked& asked = asked_[handle];
    asked = {.owner = owner, .ticket = ticket, .callbacks = std::move(callbacks)};
    if (producer_ == nullptr) {
      early_.push_back(handle);
    } else {
      Ask(handle, &asked);
      TakeUp();
    }
    return handle;
  }

  bool Cancel(Handle handle) {
    Asked dropped;  // destroyed without the lock
    const base::MutexLock lock(mutex_);
    const auto found = asked_.find(handle);
    if (found == asked_.end() || executor_ == nullptr) return false;
    Asked& asked = found->second;
    if (asked.taken_up) {
      if (!executor_->Cancel(asked.in_executor)) return false;
      gate_.Release(asked.owner, asked.bytes);
    } else {
      gate_.Withdraw(asked.owner, handle);
    }
    dropped = std::move(asked);
    asked_.erase(found);
    TakeUp();
    return true;
  }

 private:
  struct Asked {
    TicketGate::Owner owner = 0;
    Ticket ticket;
    TicketExecutor::Callbacks callbacks;
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

  void TakeUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (executor_ == nullptr) return;
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
      asked.in_executor = executor_->Submit(asked.ticket, std::move(callbacks));
    }
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
    TakeUp();
  }

  base::Mutex mutex_;
  TicketExecutor* executor_ ABSL_GUARDED_BY(mutex_);  // null once this is closed
  const BatchProducer* producer_ ABSL_GUARDED_BY(mutex_) = nullptr;
  TicketGate gate_ ABSL_GUARDED_BY(mutex_);
  Handle next_handle_ ABSL_GUARDED_BY(mutex_) = 1;
  std::unordered_map<Handle, Asked> asked_ ABSL_GUARDED_BY(mutex_);  // not done
  std::vector<Handle> early_ ABSL_GUARDED_BY(mutex_);                // before there was a producer
};

TicketIntake::TicketIntake(TicketExecutor* executor, int64_t most_bytes)
    : executor_(*executor), state_(std::make_shared<State>(executor, most_bytes)) {}

TicketIntake::~TicketIntake() { state_->Close(); }

void TicketIntake::SetProducer(const BatchProducer* producer) { state_->SetProducer(producer); }

TicketIntake::Handle TicketIntake::Submit(TicketGate::Owner owner, const Ticket& ticket,
                                          TicketExecutor::Callbacks callbacks) {
  return state_->Submit(owner, ticket, std::move(callbacks));
}

bool TicketIntake::Cancel(Handle handle) { return state_->Cancel(handle); }

}  // namespace hetero::feed
