#include "runtime/feed/transport/data_connections.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status_macros.h"
#include "base/thread.h"

namespace hetero::feed {
namespace {

constexpr auto kGreeting = std::chrono::seconds(10);
constexpr std::ptrdiff_t kMostUnknown = 64;
constexpr size_t kMostJoined = 1 << 20;  // bytes of frames that are sent by one call

}  // namespace

void DataConnection::Send(std::deque<grpc::ByteBuffer>* frames) {
  const base::MutexLock lock(mutex_);
  if (!closed_) std::move(frames->begin(), frames->end(), std::back_inserter(frames_));
  frames->clear();
  changed_.NotifyOne();
}

void DataConnection::Close() {
  const base::MutexLock lock(mutex_);
  closed_ = true;
  frames_.clear();
  socket_.Shutdown();
  changed_.NotifyOne();
}

absl::Status DataConnection::SendQueued() {
  base::MutexLock lock(mutex_);
  while (true) {
    while (!closed_ && frames_.empty()) changed_.Wait(mutex_);
    if (closed_) return absl::CancelledError("closed");
    std::vector<grpc::Slice> slices;
    std::vector<WirePart> parts;
    size_t bytes = 0;
    do {
      std::vector<grpc::Slice> frame;
      const grpc::Status status = frames_.front().Dump(&frame);
      if (!status.ok()) return absl::InternalError(status.error_message());
      bytes += frames_.front().Length();
      frames_.pop_front();
      std::move(frame.begin(), frame.end(), std::back_inserter(slices));
    } while (!frames_.empty() && bytes + frames_.front().Length() <= kMostJoined);
    lock.Unlock();
    // Short slices lie inside the slice objects, which therefore must not move any more.
    for (const grpc::Slice& slice : slices) parts.push_back({slice.begin(), slice.size()});
    const absl::Status status = socket_.Write(parts);
    slices.clear();
    lock.Lock();
    if (!status.ok() && !closed_) return status;
  }
}

DataConnections::~DataConnections() {
  base::MutexLock lock(mutex_);
  stopping_ = true;
  expected_.clear();
  for (Open& open : open_) open.connection->Close();
  changed_.NotifyAll();
  std::list<Open> ending;
  ending.swap(open_);
  lock.Unlock();  // the threads end in their destructors
}

void DataConnections::Expect(const DataOffer& offer, Callbacks callbacks) {
  const base::MutexLock lock(mutex_);
  expected_[offer.id] = {offer.key, std::move(callbacks)};
  changed_.NotifyAll();
}

void DataConnections::Forget(uint64_t id) {
  Expected gone;  // destroyed without the lock: it may hold the last of a stream
  const base::MutexLock lock(mutex_);
  if (auto node = expected_.extract(id)) gone = std::move(node.mapped());
}

void DataConnections::Accept(int fd) {
  std::list<Open> ended;  // joined without the lock
  const base::MutexLock lock(mutex_);
  for (auto it = open_.begin(); it != open_.end();) {
    const auto next = std::next(it);
    if (it->ended) ended.splice(ended.end(), open_, it);
    it = next;
  }
  if (stopping_) {
    close(fd);
    return;
  }
  EvictOldest();
  Open& open = open_.emplace_back();
  open.connection.reset(new DataConnection(fd));
  open.thread = std::jthread([this, &open] { Serve(&open); });
}

void DataConnections::EvictOldest() {
  const auto unknown = [](const Open& open) { return !open.known && !open.evicted && !open.ended; };
  if (std::count_if(open_.begin(), open_.end(), unknown) < kMostUnknown) return;
  const auto oldest = std::find_if(open_.begin(), open_.end(), unknown);
  oldest->evicted = true;
  oldest->connection->Close();
  changed_.NotifyAll();
}

absl::StatusOr<DataConnections::Expected> DataConnections::Greet(Open* open) {
  DataSocket* const socket = &open->connection->socket_;
  const base::Instant deadline = clock_.Now() + kGreeting;
  socket->SetDeadline(&clock_, deadline);
  std::array<char, kDataMagic.size()> magic;
  std::array<unsigned char, sizeof(uint64_t)> bytes;
  HETERO_RETURN_IF_ERROR(socket->Read(magic.data(), magic.size()));
  HETERO_RETURN_IF_ERROR(socket->Read(bytes.data(), bytes.size()));
  uint64_t id = 0;
  for (size_t i = 0; i < bytes.size(); ++i) id |= uint64_t{bytes[i]} << (8 * i);
  Expected expected;
  {
    // The offer takes another way than the connection, and may come later.
    const base::MutexLock lock(mutex_);
    const bool there =
        changed_.WaitUntil(mutex_, deadline, {}, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          return stopping_ || open->evicted || expected_.count(id) > 0;
        });
    if (!there || stopping_ || open->evicted) {
      return absl::NotFoundError("no stream has offered it");
    }
    open->known = true;
    expected = std::move(expected_.extract(id).mapped());
  }
  if (!expected.key.empty()) {
    HETERO_RETURN_IF_ERROR(socket->Secure(expected.key, DataSocket::Side::kWorker));
  }
  socket->SetTimeout(kGreeting);
  HETERO_RETURN_IF_ERROR(socket->Write({{kDataMagic.data(), kDataMagic.size()}}));
  socket->SetDeadline(nullptr);
  socket->SetTimeout(base::Duration::zero());  // gRPC's pings find out whether the trainer is there
  return expected;
}

void DataConnections::Serve(Open* open) {
  base::SetThreadName("feed-data");
  DataConnection& connection = *open->connection;
  const absl::StatusOr<Expected> expected = Greet(open);
  if (expected.ok()) {
    expected->callbacks.on_open(open->connection);
    const absl::Status status = connection.SendQueued();
    connection.Close();
    if (!absl::IsCancelled(status)) expected->callbacks.on_broken(status);
  } else {
    log::Debug("a data connection is closed", {{"error", expected.status().message()}});
    connection.Close();
  }
  const base::MutexLock lock(mutex_);
  open->ended = true;
}

}  // namespace hetero::feed
