// Many connections on few threads: that nobody who stops in the middle holds up the others, and
// that what is removed is left alone.
#include "runtime/feed/transport/socket_threads.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/crc32c.h"
#include "base/fake_clock.h"
#include "base/mutex.h"
#include "runtime/feed/transport/data_connections.h"
#include "runtime/feed/transport/data_receiver.h"

namespace hetero::feed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int ThreadsNamed(const std::string& name) {
  int count = 0;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(getpid()) + "/task")) {
    std::string comm;
    std::getline(std::ifstream(task.path() / "comm"), comm);
    count += comm == name ? 1 : 0;
  }
  return count;
}

template <typename Condition>
bool Becomes(Condition condition) {
  for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(10));
  return condition();
}

grpc::ByteBuffer BatchFrame(int64_t id) {
  constexpr int64_t kCount = 1000, kBytes = 12;
  auto batch = std::make_unique<Batch>();
  batch->ticket.id = id;
  batch->ticket.slots = {0, kCount};
  batch->shape = {2, 2, 3};
  batch->images = Slab(kBytes * kCount);
  batch->labels.assign(kCount, 3);
  batch->sample_ids.assign(kCount, 5);
  std::fill(batch->images.data(), batch->images.data() + kBytes * kCount, uint8_t{7});
  batch->crcs.assign(kCount, base::Crc32c(batch->images.data(), kBytes));
  return EncodeBatch(std::move(batch));
}

// A port, and whoever dials it.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 512), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    peer_ = "ipv4:127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  const std::string& peer() const { return peer_; }
  int Accept() const { return accept(fd_, nullptr, nullptr); }

 private:
  int fd_;
  std::string peer_;
};

TEST(SocketThreadsTest, ManyConnectionsTakeFewThreadsOnBothSides) {
  constexpr int kConnections = 200, kFrames = 5;
  const Listener listener;
  DataConnections connections(base::Clock::Real());
  SocketThreads threads("trainer", 3, base::Clock::Real());
  std::atomic<int> frames = 0, ended = 0;
  std::vector<std::unique_ptr<DataReceiver>> receivers;
  for (int i = 0; i < kConnections; ++i) {
    const DataOffer offer{.id = static_cast<uint64_t>(i + 1),
                          .key = i % 2 == 0 ? NewDataKey() : std::string()};
    connections.Expect(offer, {.on_open =
                                   [](const std::shared_ptr<DataConnection>& connection) {
                                     std::deque<grpc::ByteBuffer> batches;
                                     for (int n = 0; n < kFrames; ++n) {
                                       batches.push_back(BatchFrame(n));
                                     }
                                     connection->Send(&batches);
                                   },
                               .on_broken = [](const absl::Status&) {}});
    auto receiver = DataReceiver::Start(
        listener.peer(), offer,
        {.on_answer = [] {},
         .on_frame =
             [&](const Frame& frame) { frames += frame.kind == Frame::Kind::kBatch ? 1 : 0; },
         .on_end = [&](const absl::Status&, bool) { ++ended; }},
        threads);
    ASSERT_TRUE(receiver.ok()) << receiver.status();
    receivers.push_back(*std::move(receiver));
    connections.Accept(listener.Accept());
  }
  EXPECT_TRUE(Becomes([&] { return frames == kConnections * kFrames; })) << frames;
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(ThreadsNamed("trainer"), 3);
  EXPECT_EQ(ThreadsNamed("feed-data"), SocketThreads::MostForBatches());
}

TEST(SocketThreadsTest, WhoStopsInTheMiddleHoldsUpNobody) {
  const Listener listener;
  SocketThreads threads("trainer", 1, base::Clock::Real());
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(BatchFrame(1).Dump(&slices).ok());
  std::string frame;
  for (const grpc::Slice& slice : slices) frame.append(slice.begin(), slice.end());
  const auto dial = [&](std::atomic<int>* frames) {
    auto receiver = DataReceiver::Start(listener.peer(), {.id = 1, .key = ""},
                                        {.on_answer = [] {},
                                         .on_frame = [frames](const Frame&) { ++*frames; },
                                         .on_end = [](const absl::Status&, bool) {}},
                                        threads);
    EXPECT_TRUE(receiver.ok());
    return *std::move(receiver);
  };
  // One in its greeting, one in the middle of a frame.
  std::atomic<int> of_silent = 0, of_stopped = 0, of_other = 0;
  const auto silent = dial(&of_silent);
  const int silent_end = listener.Accept();
  const auto stopped = dial(&of_stopped);
  const int stopped_end = listener.Accept();
  const std::string begun = std::string(kDataMagic.data(), kDataMagic.size()) + frame;
  ASSERT_GT(send(stopped_end, begun.data(), begun.size() - 100, 0), 0);
  const auto other = dial(&of_other);
  const int other_end = listener.Accept();
  ASSERT_EQ(send(other_end, begun.data(), begun.size(), 0), static_cast<ssize_t>(begun.size()));
  EXPECT_TRUE(Becomes([&] { return of_other == 1; }));
  EXPECT_EQ(of_stopped, 0);
  ASSERT_EQ(send(stopped_end, begun.data() + begun.size() - 100, 100, 0), 100);
  EXPECT_TRUE(Becomes([&] { return of_stopped == 1; }));
  for (const int fd : {silent_end, stopped_end, other_end}) close(fd);
}

// Counts how often it is served.
class Counted : public ServedSocket {
 public:
  explicit Counted(Wait wait) : wait_(wait) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
  }
  ~Counted() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  int fd() const override { return ends_[0]; }
  Wait Serve(Ready ready) override {
    ++served;
    readable += ready.read ? 1 : 0;
    std::this_thread::sleep_for(serve_for);
    ++left;
    return wait_;
  }
  int other_end() const { return ends_[1]; }

  std::atomic<int> served = 0, left = 0, readable = 0;
  milliseconds serve_for{0};

 private:
  const Wait wait_;
  int ends_[2];
};

// Until the only thread has gone twice through all that it has to do.
void AwaitTwoRounds(SocketThreads* threads) {
  const auto other = std::make_shared<Counted>(ServedSocket::Wait{});
  ASSERT_TRUE(threads->Add(other));
  for (int round = 1; round <= 2; ++round) {
    ASSERT_TRUE(Becomes([&] { return other->served >= round; }));
    SocketThreads::Poke(*other);
  }
  SocketThreads::Remove(*other);
}

TEST(SocketThreadsTest, WhatIsRemovedIsNotServedAnyMore) {
  SocketThreads threads("test", 1, base::Clock::Real());
  const auto socket = std::make_shared<Counted>(ServedSocket::Wait{.read = true});
  socket->serve_for = milliseconds(50);
  ASSERT_TRUE(threads.Add(socket));
  ASSERT_TRUE(Becomes([&] { return socket->served > 0; }));
  ASSERT_EQ(write(socket->other_end(), "x", 1), 1);  // stays readable: it is served all the time
  SocketThreads::Remove(*socket);
  const int served = socket->served;
  EXPECT_EQ(served, socket->left);  // not in the middle of it
  SocketThreads::Poke(*socket);
  AwaitTwoRounds(&threads);
  EXPECT_EQ(served, socket->served);
  EXPECT_EQ(socket.use_count(), 1);
}

TEST(SocketThreadsTest, WaitsForNoMoreThanItIsToldTo) {
  SocketThreads threads("test", 1, base::Clock::Real());
  const auto idle = std::make_shared<Counted>(ServedSocket::Wait{});
  const auto over = std::make_shared<Counted>(ServedSocket::Wait{.over = true});
  ASSERT_TRUE(threads.Add(idle));
  ASSERT_TRUE(threads.Add(over));
  ASSERT_TRUE(Becomes([&] { return idle->served == 1 && over.use_count() == 1; }));
  ASSERT_EQ(write(idle->other_end(), "x", 1), 1);
  ASSERT_EQ(write(over->other_end(), "x", 1), 1);
  SocketThreads::Poke(*idle);
  ASSERT_TRUE(Becomes([&] { return idle->served == 2; }));
  AwaitTwoRounds(&threads);
  EXPECT_EQ(idle->readable, 0);
  EXPECT_EQ(idle->served, 2);
  EXPECT_EQ(over->served, 1);
}

TEST(SocketThreadsTest, IsThereWhenItsTimeIsOver) {
  base::FakeClock clock;
  SocketThreads threads("test", 1, clock);
  const auto soon =
      std::make_shared<Counted>(ServedSocket::Wait{.until = clock.Now() + milliseconds(20)});
  const auto later =
      std::make_shared<Counted>(ServedSocket::Wait{.until = clock.Now() + seconds(3600)});
  ASSERT_TRUE(threads.Add(soon));
  ASSERT_TRUE(threads.Add(later));
  ASSERT_TRUE(Becomes([&] { return soon->served > 0 && later->served > 0; }));
  clock.Advance(milliseconds(30));
  EXPECT_TRUE(Becomes([&] { return soon->served > 1; }));
  SocketThreads::Remove(*soon);
  EXPECT_EQ(later->served, 1);
}

TEST(SocketThreadsTest, OneThatIsReadableHasNoMoreTurnsThanOneThatIsNot) {
  SocketThreads threads("test", 1, base::Clock::Real());
  const auto readable = std::make_shared<Counted>(ServedSocket::Wait{.read = true, .again = true});
  const auto quiet = std::make_shared<Counted>(ServedSocket::Wait{.read = true, .again = true});
  ASSERT_EQ(write(readable->other_end(), "x", 1), 1);  // and nobody reads it
  ASSERT_TRUE(threads.Add(readable));
  ASSERT_TRUE(threads.Add(quiet));
  ASSERT_TRUE(Becomes([&] { return quiet->served >= 1000; }));
  // This thread may lose its core between any two of these lines.
  const int before = quiet->served, of_readable = readable->served, after = quiet->served;
  SocketThreads::Remove(*readable);
  SocketThreads::Remove(*quiet);
  EXPECT_GE(of_readable, before - before / 10 - 100);
  EXPECT_LE(of_readable, after + after / 10 + 100);
}

// A frame that goes on for ever, to one who reads it as quickly, and small ones to another.
TEST(SocketThreadsTest, AConnectionThatTakesAllThatItIsSentLeavesOthersTheirTurns) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  DataSocket socket(ends[0]);
  std::jthread reader([end = ends[1]] {
    std::vector<char> buffer(1 << 20);
    while (recv(end, buffer.data(), buffer.size(), 0) > 0) {
    }
  });
  const std::vector<uint8_t> large(64 << 20, 7);
  socket.Write({{large.data(), large.size()}});
  for (size_t sent = 0; sent < large.size();) {
    size_t most = 1 << 20;
    const absl::StatusOr<DataSocket::Flushed> flushed = socket.FlushSome(&most);
    ASSERT_TRUE(flushed.ok()) << flushed.status();
    sent += (1 << 20) - most;
    if (*flushed == DataSocket::Flushed::kAll) {
      EXPECT_EQ(sent, large.size());
    } else {
      EXPECT_EQ(*flushed == DataSocket::Flushed::kEnough, most == 0);
    }
  }
  socket.Shutdown();
  reader.join();
  close(ends[1]);
}

}  // namespace
}  // namespace hetero::feed
