#include "runtime/feed/transport/socket_threads.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstring>
#include <span>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "base/process_usage.h"
#include "base/thread.h"

namespace hetero::feed {
namespace {

constexpr int kMostEvents = 64;  // of a call

uint32_t EventsOf(const ServedSocket::Wait& wait) {
  return (wait.read ? uint32_t{EPOLLIN | EPOLLRDHUP} : 0) | (wait.write ? uint32_t{EPOLLOUT} : 0);
}

ServedSocket::Ready ReadyOf(uint32_t events) {
  return {.read = (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0,
          .write = (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0,
          .gone = (events & (EPOLLHUP | EPOLLERR)) != 0};
}

}  // namespace

class SocketThread {
 public:
  SocketThread(const std::string& name, base::Clock& clock)
      : clock_(clock),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = kWake}};
    if (epoll_ < 0 || wake_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) return;
    try {
      thread_ = std::thread([this, name] { Run(name); });
      works_ = true;
    } catch (const std::system_error&) {  // there may be others
    }
  }
  ~SocketThread() {
    {
      const base::MutexLock lock(mutex_);
      stopping_ = true;
    }
    Wake();
    if (thread_.joinable()) thread_.join();
    for (auto& [number, seat] : seats_) seat.socket->thread_ = nullptr;
    if (wake_ >= 0) close(wake_);
    if (epoll_ >= 0) close(epoll_);
  }
  SocketThread(const SocketThread&) = delete;
  SocketThread& operator=(const SocketThread&) = delete;

  bool works() const { return works_; }
  size_t size() {
    const base::MutexLock lock(mutex_);
    return seats_.size();
  }

  bool Add(std::shared_ptr<ServedSocket> socket) {
    const uint64_t number = socket->seat_;
    {
      const base::MutexLock lock(mutex_);
      epoll_event event = {.events = 0, .data = {.u64 = number}};
      if (epoll_ctl(epoll_, EPOLL_CTL_ADD, socket->fd(), &event) != 0) return false;
      seats_[number].socket = std::move(socket);
    }
    Poke(number);
    return true;
  }

  void Poke(uint64_t number) {
    {
      const base::MutexLock lock(mutex_);
      const auto seat = seats_.find(number);
      if (seat == seats_.end() || std::exchange(seat->second.poked, true)) return;
      poked_.push_back(number);
      if (poked_.size() > 1 || awake_) return;  // it looks before it waits
    }
    Wake();
  }

  void Remove(uint64_t number) {
    std::shared_ptr<ServedSocket> gone;  // destroyed without the lock
    const base::MutexLock lock(mutex_);
    if (const auto seat = seats_.find(number); seat != seats_.end()) {
      gone = seat->second.socket;
      Forget(seat);
    }
    while (serving_ == number && std::this_thread::get_id() != thread_.get_id()) {
      served_.Wait(mutex_);
    }
  }

 private:
  static constexpr uint64_t kWake = 0;  // no seat's number
  struct Seat {
    std::shared_ptr<ServedSocket> socket;
    uint32_t events = 0;  // that epoll waits for
    bool poked = false;
    uint64_t round = 0;  // in which it was found due last
  };
  // By number, which no two ever have: a socket may be gone, and another one be at its address,
  // between what epoll says and what is done about it.
  using Seats = std::unordered_map<uint64_t, Seat>;
  using Due = std::vector<std::pair<uint64_t, ServedSocket::Ready>>;

  void Wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
  }
  void Forget(Seats::iterator seat) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ServedSocket& socket = *seat->second.socket;
    socket.thread_ = nullptr;
    epoll_ctl(epoll_, EPOLL_CTL_DEL, socket.fd(), nullptr);
    std::erase(poked_, seat->first);
    deadlines_.erase(seat->first);
    seats_.erase(seat);
  }

  void Run(const std::string& name);
  // Milliseconds for epoll_wait().
  int Patience() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Those to serve now, each once.
  void FindDue(std::span<const epoll_event> events, Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Serve(uint64_t number, ServedSocket::Ready ready);

  base::Clock& clock_;
  const int epoll_, wake_;
  bool works_ = false;
  base::Mutex mutex_;
  base::CondVar served_;
  Seats seats_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> poked_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, base::Instant> deadlines_ ABSL_GUARDED_BY(mutex_);
  uint64_t round_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t serving_ ABSL_GUARDED_BY(mutex_) = 0;
  bool awake_ ABSL_GUARDED_BY(mutex_) = true;  // looks at poked_ before it waits
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

int SocketThread::Patience() {
  if (!poked_.empty() || stopping_) return 0;
  if (deadlines_.empty()) return -1;
  base::Instant first = base::Instant::max();
  for (const auto& [number, until] : deadlines_) first = std::min(first, until);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - clock_.Now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
}

void SocketThread::FindDue(std::span<const epoll_event> events, Due* due) {
  ++round_;
  const auto add = [&](uint64_t number,
                       ServedSocket::Ready ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto seat = seats_.find(number);
    if (seat == seats_.end() || std::exchange(seat->second.round, round_) == round_) return;
    due->emplace_back(number, ready);
  };
  for (const epoll_event& event : events) {
    uint64_t count = 0;
    if (event.data.u64 != kWake) {
      add(event.data.u64, ReadyOf(event.events));
    } else if (read(wake_, &count, sizeof count) < 0 && errno != EAGAIN) {
      log::Warning("data connections: eventfd", {{"error", std::strerror(errno)}});
    }
  }
  for (const uint64_t number : poked_) {
    seats_.at(number).poked = false;
    add(number, {});
  }
  poked_.clear();
  if (deadlines_.empty()) return;
  const base::Instant now = clock_.Now();
  for (const auto& [number, until] : deadlines_) {
    if (until <= now) add(number, {});
  }
}

void SocketThread::Run(const std::string& name) {
  base::SetThreadName(name);
  std::array<epoll_event, kMostEvents> events;
  Due due;
  while (true) {
    int patience = 0;
    {
      const base::MutexLock lock(mutex_);
      if (stopping_) return;
      patience = Patience();
      awake_ = false;
    }
    const int found = epoll_wait(epoll_, events.data(), kMostEvents, patience);
    due.clear();
    {
      const base::MutexLock lock(mutex_);
      awake_ = true;
      FindDue({events.data(), static_cast<size_t>(std::max(found, 0))}, &due);
    }
    for (const auto& [number, ready] : due) Serve(number, ready);
  }
}

void SocketThread::Serve(uint64_t number, ServedSocket::Ready ready) {
  std::shared_ptr<ServedSocket> held;
  base::MutexLock lock(mutex_);
  auto seat = seats_.find(number);
  if (seat == seats_.end() || stopping_) return;  // removed meanwhile
  held = seat->second.socket;
  serving_ = number;
  lock.Unlock();
  const ServedSocket::Wait wait = held->Serve(ready);
  lock.Lock();
  serving_ = 0;
  served_.NotifyAll();
  seat = seats_.find(number);
  if (seat != seats_.end() && wait.over) {
    Forget(seat);
  } else if (seat != seats_.end()) {
    const uint32_t events = EventsOf(wait);
    if (events != seat->second.events) {
      seat->second.events = events;
      epoll_event event = {.events = events, .data = {.u64 = number}};
      epoll_ctl(epoll_, EPOLL_CTL_MOD, held->fd(), &event);
    }
    if (wait.until == base::Instant::max()) {
      deadlines_.erase(number);
    } else {
      deadlines_[number] = wait.until;
    }
    if (wait.again && !std::exchange(seat->second.poked, true)) poked_.push_back(number);
  }
  lock.Unlock();  // `held` may be the last
}

SocketThreads::SocketThreads(std::string name, int most, base::Clock& clock)
    : name_(std::move(name)), most_(static_cast<size_t>(std::max(most, 1))), clock_(clock) {}

SocketThreads::~SocketThreads() {
  std::vector<std::unique_ptr<SocketThread>> threads;
  const base::MutexLock lock(mutex_);
  threads.swap(threads_);
}

int SocketThreads::MostForBatches() { return std::clamp(base::UsableCores(), 2, 16); }

bool SocketThreads::Add(std::shared_ptr<ServedSocket> socket) {
  const base::MutexLock lock(mutex_);
  SocketThread* least = nullptr;
  size_t fewest = 0;
  for (const auto& thread : threads_) {
    const size_t size = thread->size();
    if (least != nullptr && size >= fewest) continue;
    least = thread.get();
    fewest = size;
  }
  if (threads_.size() < most_ && (least == nullptr || fewest > 0)) {
    auto thread = std::make_unique<SocketThread>(name_, clock_);
    if (thread->works()) {
      least = thread.get();
      threads_.push_back(std::move(thread));
    } else if (!std::exchange(warned_, true)) {
      log::Warning("the system has no more threads or descriptors for data connections",
                   {{"threads", threads_.size()}, {"wanted", most_}});
    }
  }
  if (least == nullptr) return false;
  socket->seat_ = next_seat_++;
  socket->thread_ = least;
  return least->Add(std::move(socket));
}

void SocketThreads::Poke(const ServedSocket& socket) {
  if (SocketThread* const thread = socket.thread_) thread->Poke(socket.seat_);
}

void SocketThreads::Remove(const ServedSocket& socket) {
  if (SocketThread* const thread = socket.thread_) thread->Remove(socket.seat_);
}

}  // namespace hetero::feed
