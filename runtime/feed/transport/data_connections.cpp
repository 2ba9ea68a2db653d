#include "runtime/feed/transport/data_connections.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>
#include <utility>

#include "base/log.h"
#include "base/socket_address.h"
#include "base/status_macros.h"

namespace hetero::feed {
namespace {

constexpr auto kGreeting = std::chrono::seconds(10);
constexpr size_t kGreetingBytes = kDataMagic.size() + sizeof(uint64_t);
constexpr size_t kMostJoined = 1 << 20;  // bytes of frames that are sent by one call
constexpr base::Duration kWarningInterval = std::chrono::minutes(1);

// For messages: of one that has gone already nothing is known.
std::string PeerOf(int fd) {
  std::string address = base::PeerAddress(fd);
  return address.empty() ? "unknown" : address;
}

}  // namespace

DataConnection::DataConnection(DataConnections& all, int fd)
    : all_(all), socket_(fd), peer_(PeerOf(fd)), deadline_(all.clock_.Now() + kGreeting) {}

void DataConnection::Send(std::deque<grpc::ByteBuffer>* frames) {
  {
    const base::MutexLock lock(mutex_);
    if (!closed_) std::move(frames->begin(), frames->end(), std::back_inserter(frames_));
    frames->clear();
    if (closed_ || !std::exchange(resting_, false)) return;
  }
  SocketThreads::Poke(*this);
}

void DataConnection::Close() {
  std::deque<grpc::ByteBuffer> dropped;  // destroyed without the lock
  {
    const base::MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(frames_);
    socket_.Shutdown();
  }
  SocketThreads::Poke(*this);
}

ServedSocket::Wait DataConnection::Serve(Ready ready) {
  if (ready.read) socket_.SetReadable();
  absl::StatusOr<Wait> wait = GoOnOrFail(ready);
  if (wait.ok() && stage_ != Stage::kFrames) {
    wait->until = deadline_;
    if (all_.clock_.Now() >= deadline_) {
      wait = absl::DeadlineExceededError("data connection: its greeting took too long");
    }
  }
  bool closed = false;
  {
    const base::MutexLock lock(mutex_);
    closed = closed_;
  }
  if (wait.ok() && !closed) return *wait;
  Close();
  slices_.clear();
  on_open_ = nullptr;
  const auto on_broken = std::exchange(on_broken_, nullptr);
  log::Debug("a data connection is closed", {{"peer", peer_}, {"error", wait.status().message()}});
  if (stage_ == Stage::kFrames && !closed) {
    on_broken(wait.status());
  }
  all_.Ended(*this);
  return {.over = true};
}

absl::StatusOr<ServedSocket::Wait> DataConnection::GoOnOrFail(Ready ready) {
  try {
    return GoOn(ready);
  } catch (const std::bad_alloc&) {  // the thread has others to serve
    return absl::ResourceExhaustedError("no memory for what a data connection carries");
  }
}

absl::StatusOr<ServedSocket::Wait> DataConnection::GoOn(Ready ready) {
  switch (stage_) {
    case Stage::kGreeting:
      return ReadGreeting();
    case Stage::kOffer:
      return AwaitOffer(ready);
    case Stage::kHandshake:
      return ShakeHands();
    case Stage::kAnswer:
      return Answer();
    case Stage::kFrames:
      return SendFrames(ready);
  }
  __builtin_unreachable();
}

absl::StatusOr<ServedSocket::Wait> DataConnection::ReadGreeting() {
  while (greeting_.size() < kGreetingBytes) {
    const size_t had = greeting_.size();
    greeting_.resize(kGreetingBytes);
    const absl::StatusOr<size_t> got = socket_.Read(greeting_.data() + had, kGreetingBytes - had);
    greeting_.resize(had + (got.ok() ? *got : 0));
    HETERO_RETURN_IF_ERROR(got.status());
    if (*got == 0) return Wait{.read = true};
  }
  for (size_t i = 0; i < sizeof id_; ++i) {
    id_ |= uint64_t{greeting_[kDataMagic.size() + i]} << (8 * i);
  }
  stage_ = Stage::kOffer;
  return AwaitOffer({});
}

absl::StatusOr<ServedSocket::Wait> DataConnection::AwaitOffer(Ready ready) {
  // The offer takes another way than the connection, and may come later.
  const std::unique_ptr<DataConnections::Expected> expected = all_.Take(id_, *this);
  if (expected == nullptr) {
    if (ready.gone) return absl::UnavailableError("the other side closed the data connection");
    return Wait{};
  }
  on_open_ = std::move(expected->callbacks.on_open);
  on_broken_ = std::move(expected->callbacks.on_broken);
  stage_ = Stage::kHandshake;
  if (!expected->key.empty()) {
    HETERO_RETURN_IF_ERROR(socket_.Secure(expected->key, TlsSide::kWorker));
    return ShakeHands();
  }
  return Greet();
}

absl::StatusOr<ServedSocket::Wait> DataConnection::ShakeHands() {
  HETERO_ASSIGN_OR_RETURN(const TlsHandshake::State state, socket_.ShakeHands());
  if (state == TlsHandshake::State::kReads) return Wait{.read = true};
  if (state == TlsHandshake::State::kWrites) return Wait{.write = true};
  return Greet();
}

absl::StatusOr<ServedSocket::Wait> DataConnection::Greet() {
  stage_ = Stage::kAnswer;
  socket_.Write({{kDataMagic.data(), kDataMagic.size()}});
  return Answer();
}

absl::StatusOr<ServedSocket::Wait> DataConnection::Answer() {
  HETERO_ASSIGN_OR_RETURN(const bool sent, socket_.Flush());
  if (!sent) return Wait{.write = true};
  // From here on gRPC's pings find out whether the trainer is there.
  stage_ = Stage::kFrames;
  std::exchange(on_open_, nullptr)(shared_from_this());
  return SendFrames({});
}

absl::StatusOr<ServedSocket::Wait> DataConnection::SendFrames(Ready ready) {
  if (ready.read) HETERO_RETURN_IF_ERROR(socket_.CheckSilent());
  for (size_t most = kTurnBytes;;) {
    HETERO_ASSIGN_OR_RETURN(const DataSocket::Flushed flushed, socket_.FlushSome(&most));
    if (flushed == DataSocket::Flushed::kBlocked) return Wait{.read = true, .write = true};
    if (flushed == DataSocket::Flushed::kEnough) return Wait{.read = true, .again = true};
    slices_.clear();
    HETERO_ASSIGN_OR_RETURN(const bool more, TakeQueued());
    if (!more) return Wait{.read = true};
  }
}

absl::StatusOr<bool> DataConnection::TakeQueued() {
  const base::MutexLock lock(mutex_);
  resting_ = frames_.empty();
  if (resting_) return false;
  size_t bytes = 0;
  do {
    std::vector<grpc::Slice> frame;
    const grpc::Status status = frames_.front().Dump(&frame);
    if (!status.ok()) return absl::InternalError(status.error_message());
    bytes += frames_.front().Length();
    frames_.pop_front();
    std::move(frame.begin(), frame.end(), std::back_inserter(slices_));
  } while (!frames_.empty() && bytes + frames_.front().Length() <= kMostJoined);
  // Short slices lie inside the slice objects, which therefore must not move any more.
  std::vector<WirePart> parts;
  parts.reserve(slices_.size());
  for (const grpc::Slice& slice : slices_) parts.push_back({slice.begin(), slice.size()});
  socket_.Write(std::move(parts));
  return true;
}

DataConnections::DataConnections(base::Clock& clock, size_t most_unknown)
    : clock_(clock),
      most_unknown_(most_unknown),
      threads_(
          std::make_unique<SocketThreads>("feed-data", SocketThreads::MostForBatches(), clock)) {}

DataConnections::~DataConnections() {
  std::map<uint64_t, Expected> expected;  // destroyed without the lock
  {
    const base::MutexLock lock(mutex_);
    stopping_ = true;
    expected.swap(expected_);
  }
  threads_.reset();
  const base::MutexLock lock(mutex_);
  // A child process may have the descriptors, too.
  for (const Open& open : open_) open.connection->socket_.Shutdown();
  open_.clear();
}

void DataConnections::Expect(const DataOffer& offer, Callbacks callbacks) {
  const base::MutexLock lock(mutex_);
  expected_[offer.id] = {offer.key, std::move(callbacks)};
  for (const Open& open : open_) {
    if (open.awaits == offer.id) SocketThreads::Poke(*open.connection);
  }
}

void DataConnections::Forget(uint64_t id) {
  Expected gone;  // destroyed without the lock: it may hold the last of a stream
  const base::MutexLock lock(mutex_);
  if (auto node = expected_.extract(id)) gone = std::move(node.mapped());
}

void DataConnections::Accept(int fd) {
  const base::MutexLock lock(mutex_);
  if (stopping_) {
    shutdown(fd, SHUT_RDWR);  // a child process may have it, too
    close(fd);
    return;
  }
  EvictOldest();
  Open& open = open_.emplace_back();
  open.connection.reset(new DataConnection(*this, fd));
  if (threads_->Add(open.connection)) return;
  log::Warning("a data connection is closed: the system has no descriptor or thread left for it",
               {{"peer", open.connection->peer_}});
  open.connection->socket_.Shutdown();
  open_.pop_back();
}

void DataConnections::EvictOldest() {
  const auto unknown = [](const Open& open) { return !open.known && !open.evicted; };
  const auto count = std::count_if(open_.begin(), open_.end(), unknown);
  if (static_cast<size_t>(count) < most_unknown_) return;
  const auto oldest = std::find_if(open_.begin(), open_.end(), unknown);
  oldest->evicted = true;
  if (const base::Instant now = clock_.Now(); now >= next_warning_) {
    next_warning_ = now + kWarningInterval;
    log::Warning("data connections that name no offer are closed before their time: too many dial",
                 {{"waiting", count}, {"oldest", oldest->connection->peer_}});
  }
  oldest->connection->Close();
}

std::unique_ptr<DataConnections::Expected> DataConnections::Take(uint64_t id,
                                                                 const DataConnection& connection) {
  const base::MutexLock lock(mutex_);
  const auto open = std::find_if(open_.begin(), open_.end(), [&](const Open& one) {
    return one.connection.get() == &connection;
  });
  if (open == open_.end() || open->evicted || stopping_) return nullptr;
  auto offered = expected_.extract(id);
  open->awaits = offered.empty() ? id : 0;
  if (offered.empty()) return nullptr;
  open->known = true;
  return std::make_unique<Expected>(std::move(offered.mapped()));
}

void DataConnections::Ended(const DataConnection& connection) {
  std::list<Open> ended;  // destroyed without the lock
  const base::MutexLock lock(mutex_);
  const auto open = std::find_if(open_.begin(), open_.end(), [&](const Open& one) {
    return one.connection.get() == &connection;
  });
  if (open != open_.end()) ended.splice(ended.end(), open_, open);
}

}  // namespace hetero::feed
