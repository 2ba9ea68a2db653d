#include "base/event_stream.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <list>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace hetero::metrics {
namespace {

using Text = std::shared_ptr<const std::string>;

// A proxy on the way is asked to pass on what it has.
constexpr char kHead[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
    "X-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    "retry: 1000\n\n";
constexpr char kStillThere[] = ":\n\n";

base::Instant EventNow() { return base::Clock::Real().Now(); }

Text Share(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

Text MakeEvent(const char* name, const std::string& data) {
  std::string event = absl::StrCat("event: ", name, "\n");
  for (const absl::string_view line : absl::StrSplit(data, '\n')) {
    absl::StrAppend(&event, "data: ", line, "\n");
  }
  return Share(event + "\n");
}

// One who looks. Not thread-safe.
class Viewer {
 public:
  explicit Viewer(base::Socket socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.fd(); }
  size_t behind() const { return waiting_.size(); }
  void Add(Text text) { waiting_.push_back(std::move(text)); }

  // False: it has gone. What it says is of no interest, but it must not say it without end.
  bool Listen() {
    std::array<char, 1024> bytes;
    const ssize_t count = recv(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    heard_ += static_cast<size_t>(count);
    return count > 0 && heard_ <= kMostHeard;
  }

  // As much as it takes now. False: it has gone.
  bool Send() {
    while (!waiting_.empty()) {
      const std::string& text = *waiting_.front();
      const ssize_t count =
          send(fd(), text.data() + sent_, text.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
      sent_ += static_cast<size_t>(count);
      if (sent_ < text.size()) continue;
      waiting_.pop_front();
      sent_ = 0;
    }
    return true;
  }

  // Closing alone would leave the kernel with what it does not read, for minutes.
  void Drop() {
    const linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }

 private:
  static constexpr size_t kMostHeard = 4096;

  base::Socket socket_;
  std::deque<Text> waiting_;
  size_t sent_ = 0;  // of the first
  size_t heard_ = 0;
};

}  // namespace

struct EventStream::Impl {
  Impl(Source given, Limits limited)
      : source(std::move(given)), limits(limited), wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void Wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake.fd(), &one, sizeof one);
  }

  void Run(const std::stop_token& stop) {
    base::SetThreadName("events");
    const std::stop_callback on_stop(stop, [this] { Wake(); });
    base::Instant next = EventNow();
    while (!stop.stop_requested()) {
      Await(next);
      SendAll();
      const bool last = farewell_wanted();
      if (EventNow() >= next || last) {
        Tell();
        next = EventNow() + limits.interval;
      }
      if (TakeNew()) next = EventNow() + limits.interval;
      if (last) SayGoodbye(stop);
    }
  }

  bool farewell_wanted() {
    const base::MutexLock lock(mutex);
    return farewells_wanted > farewells;
  }

  void Await(base::Instant until) {
    std::vector<pollfd> events = {{.fd = wake.fd(), .events = POLLIN, .revents = 0}};
    for (const Viewer& viewer : viewers) {
      const int wanted = viewer.behind() > 0 ? POLLIN | POLLOUT : POLLIN;
      events.push_back({.fd = viewer.fd(), .events = static_cast<short>(wanted), .revents = 0});
    }
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - EventNow()).count();
    // Without viewers there is nothing to tell: only a new one wakes this thread.
    const int most = viewers.empty() ? -1 : static_cast<int>(std::clamp<int64_t>(wait, 0, 60'000));
    poll(events.data(), events.size(), most);
    uint64_t ignored = 0;
    [[maybe_unused]] const ssize_t taken = read(wake.fd(), &ignored, sizeof ignored);
    for (const pollfd& event : events) {
      if (event.fd == wake.fd() || (event.revents & ~POLLOUT) == 0) continue;
      DropIf([&](Viewer& viewer) { return viewer.fd() == event.fd && !viewer.Listen(); });
    }
  }

  template <typename Condition>
  void DropIf(const Condition& condition) {
    const size_t dropped = std::erase_if(viewers, condition);
    if (dropped == 0) return;
    const base::MutexLock lock(mutex);
    count -= dropped;
  }

  void SendAll() {
    DropIf([](Viewer& viewer) { return !viewer.Send(); });
  }

  void Tell() {
    if (viewers.empty()) return;
    const std::string change = source.change();
    const Text event = change.empty() ? Share(kStillThere) : MakeEvent("change", change);
    DropIf([&](Viewer& viewer) {
      if (viewer.behind() >= limits.behind) {
        viewer.Drop();
        return true;
      }
      viewer.Add(event);
      return !viewer.Send();
    });
  }

  // Whether they are the first.
  bool TakeNew() {
    std::list<base::Socket> taken;
    {
      const base::MutexLock lock(mutex);
      taken.swap(arrived);
    }
    if (taken.empty()) return false;
    const bool first = viewers.empty();
    if (first) source.change();  // since the last one left nobody has asked
    const Text whole = MakeEvent("whole", source.whole());
    const Text head = Share(kHead);
    for (base::Socket& socket : taken) {
      Viewer& viewer = viewers.emplace_back(std::move(socket));
      viewer.Add(head);
      viewer.Add(whole);
    }
    SendAll();
    return first;
  }

  void SayGoodbye(const std::stop_token& stop) {
    const base::Instant until = EventNow() + limits.goodbye;
    while (!stop.stop_requested() && EventNow() < until) {
      DropIf([](const Viewer& viewer) { return viewer.behind() == 0; });
      if (viewers.empty()) break;
      Await(until);
      SendAll();
    }
    for (Viewer& viewer : viewers) viewer.Drop();
    DropIf([](const Viewer&) { return true; });
    const base::MutexLock lock(mutex);
    farewells = farewells_wanted;
    changed.NotifyAll();
  }

  const Source source;
  const Limits limits;
  const base::Socket wake;
  std::list<Viewer> viewers;  // of the thread alone
  base::Mutex mutex;
  std::list<base::Socket> arrived ABSL_GUARDED_BY(mutex);
  size_t count ABSL_GUARDED_BY(mutex) = 0;  // of viewers, those that have just arrived included
  base::CondVar changed;
  int farewells_wanted ABSL_GUARDED_BY(mutex) = 0;
  int farewells ABSL_GUARDED_BY(mutex) = 0;
  std::jthread thread;
};

EventStream::EventStream(Source source, Limits limits)
    : impl_(std::make_unique<Impl>(std::move(source), limits)) {
  impl_->thread = std::jthread([this](const std::stop_token& stop) { impl_->Run(stop); });
}

EventStream::~EventStream() = default;

const EventStream::Limits& EventStream::limits() const { return impl_->limits; }

bool EventStream::full() const { return viewers() >= impl_->limits.viewers; }

size_t EventStream::viewers() const {
  const base::MutexLock lock(impl_->mutex);
  return impl_->count;
}

void EventStream::Add(base::Socket viewer) {
  const base::MutexLock lock(impl_->mutex);
  if (impl_->count >= impl_->limits.viewers) return;
  ++impl_->count;
  impl_->arrived.push_back(std::move(viewer));
  impl_->Wake();
}

void EventStream::Finish() {
  const base::MutexLock lock(impl_->mutex);
  const int own = ++impl_->farewells_wanted;
  impl_->Wake();
  impl_->changed.Wait(impl_->mutex, [this, own]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(impl_->mutex) {
    return impl_->farewells >= own;
  });
}

}  // namespace hetero::metrics
