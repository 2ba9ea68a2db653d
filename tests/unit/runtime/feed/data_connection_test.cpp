// Batches past gRPC: what the way there may look like, and what a trainer or a worker does when it
// is not the way it should be. That the stream stays the same is transport_test's and
// network_fault_test's.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/fake_clock.h"
#include "runtime/feed/feed_listener.h"
#include "runtime/feed/transport/data_connections.h"
#include "runtime/feed/transport/data_receiver.h"

namespace hetero::feed {
namespace {

using std::chrono::seconds;

constexpr seconds kDeadline{60};

Ticket SomeTicket(int64_t id, int64_t count) {
  Ticket ticket;
  ticket.id = id;
  ticket.slots = {0, count};
  return ticket;
}

// A frame with `count` samples of 12 bytes, of which the checksums are not those of the bytes when
// `damaged`.
grpc::ByteBuffer BatchFrame(int64_t id, int64_t count, bool damaged = false) {
  auto batch = std::make_unique<Batch>();
  batch->ticket = SomeTicket(id, count);
  batch->shape = {2, 2, 3};
  batch->images = Slab(12 * count);
  batch->labels.assign(static_cast<size_t>(count), 3);
  batch->sample_ids.assign(static_cast<size_t>(count), 5);
  for (int64_t i = 0; i < count; ++i) {
    uint8_t* sample = batch->images.data() + 12 * i;
    std::fill(sample, sample + 12, static_cast<uint8_t>(i));
    batch->crcs.push_back(base::Crc32c(sample, 12) + (damaged ? 1 : 0));
  }
  return EncodeBatch(std::move(batch));
}

// A worker's port with its data connections, and one trainer that dials it.
class DataConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto listener = FeedListener::Bind("127.0.0.1:0", base::Clock::Real());
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    Listen([this](int connection) { connections_.Accept(connection); });
  }
  void TearDown() override { listener_.reset(); }

  // `take` gets what begins as a data connection.
  void Listen(std::function<void(int)> take) {
    listener_->Start({.to_grpc = [](int, int connection) { close(connection); },
                      .routes = {{std::string_view(kDataMagic.data(), kDataMagic.size()), take}}});
  }
  std::string Peer() const { return "ipv4:127.0.0.1:" + std::to_string(listener_->port()); }

  void Expect(const DataOffer& offer) {
    connections_.Expect(
        offer, {.on_open = [this](std::shared_ptr<DataConnection> c) { opened_.set_value(c); },
                .on_broken = [this](const absl::Status& s) { broken_.set_value(s); }});
  }
  void Dial(const std::string& peer, const DataOffer& offer) {
    auto receiver = DataReceiver::Start(peer, offer,
                                        {.on_answer = [this] { ++answers_; },
                                         .on_frame =
                                             [this](Frame frame) {
                                               frames_.push_back(std::move(frame));
                                               if (frames_.size() == wanted_) all_.set_value();
                                             },
                                         .on_end =
                                             [this](const absl::Status& status, bool taken) {
                                               ended_.set_value({status, taken});
                                             },
                                         .open_memory = open_memory_,
                                         .most_bytes = most_bytes_},
                                        threads_);
    ASSERT_TRUE(receiver.ok()) << receiver.status();
    receiver_ = *std::move(receiver);
  }
  std::shared_ptr<DataConnection> Opened() {
    std::future<std::shared_ptr<DataConnection>> opened = opened_.get_future();
    if (opened.wait_for(kDeadline) != std::future_status::ready) return nullptr;
    return opened.get();
  }
  std::pair<absl::Status, bool> Ended() {
    std::future<std::pair<absl::Status, bool>> ended = ended_.get_future();
    if (ended.wait_for(kDeadline) != std::future_status::ready) {
      return {absl::InternalError("it did not end"), false};
    }
    return ended.get();
  }
  void ExpectFramesToCome(const DataOffer& offer) {
    Expect(offer);
    Dial(Peer(), offer);
    const std::shared_ptr<DataConnection> connection = Opened();
    ASSERT_NE(connection, nullptr);
    // Of no bytes, of few, of more than is read ahead, damaged, and after that.
    std::deque<grpc::ByteBuffer> frames = {EncodeStarted(SomeTicket(1, 4)), BatchFrame(1, 4),
                                           BatchFrame(2, 100'000), BatchFrame(3, 64, true)};
    connection->Send(&frames);
    EXPECT_TRUE(frames.empty());
    frames.push_back(BatchFrame(4, 1));
    connection->Send(&frames);
    ASSERT_EQ(all_.get_future().wait_for(kDeadline), std::future_status::ready);
    connection->Close();
    const auto [status, taken] = Ended();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_TRUE(taken);
    EXPECT_EQ(answers_, 1);
    EXPECT_EQ(frames_[0].kind, Frame::Kind::kStarted);
    ASSERT_EQ(frames_[2].kind, Frame::Kind::kBatch);
    const Batch& large = *frames_[2].batch;
    ASSERT_EQ(large.images.size(), 1'200'000);
    for (int64_t i = 0; i < large.images.size(); ++i) {
      ASSERT_EQ(large.images.data()[i], static_cast<uint8_t>(i / 12)) << i;
    }
    EXPECT_EQ(frames_[3].kind, Frame::Kind::kFailed);
    EXPECT_TRUE(frames_[3].damaged);
    EXPECT_EQ(frames_[4].ticket.id, 4);
    EXPECT_EQ(frames_[4].kind, Frame::Kind::kBatch);
  }

  const size_t wanted_ = 5;
  size_t most_bytes_ = std::numeric_limits<size_t>::max();
  OpenMemory open_memory_ = NoMemory;
  std::promise<std::shared_ptr<DataConnection>> opened_;
  std::promise<absl::Status> broken_;
  std::promise<std::pair<absl::Status, bool>> ended_;
  std::promise<void> all_;
  std::vector<Frame> frames_;
  int answers_ = 0;
  DataConnections connections_{base::Clock::Real(), 64};
  SocketThreads threads_{"test", 2, base::Clock::Real()};
  std::unique_ptr<FeedListener> listener_;
  std::unique_ptr<DataReceiver> receiver_;
};

TEST_F(DataConnectionTest, FramesComeInPlainText) { ExpectFramesToCome({.id = 7, .key = ""}); }

TEST_F(DataConnectionTest, FramesComeUnderTls) {
  ExpectFramesToCome({.id = 7, .key = NewDataKey()});
}

TEST_F(DataConnectionTest, OfferMayComeAfterTheConnection) {
  const DataOffer offer{.id = 8, .key = NewDataKey()};
  Dial(Peer(), offer);
  // No event says when the connection waits for its offer.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  Expect(offer);
  EXPECT_NE(Opened(), nullptr);
}

TEST_F(DataConnectionTest, WhoDoesNotKnowTheKeyIsRefused) {
  Expect({.id = 9, .key = NewDataKey()});
  Dial(Peer(), {.id = 9, .key = NewDataKey()});
  const auto [status, taken] = Ended();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_FALSE(taken);
  EXPECT_EQ(opened_.get_future().wait_for(seconds(0)), std::future_status::timeout);
}

TEST_F(DataConnectionTest, PlainTextIsRefusedWhereTlsWasOffered) {
  Expect({.id = 9, .key = NewDataKey()});
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(listener_->port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::string greeting = std::string(kDataMagic.data(), kDataMagic.size()) + "\x09" +
                               std::string(7, '\0') + "no TLS here, please";
  ASSERT_EQ(write(fd, greeting.data(), greeting.size()), static_cast<ssize_t>(greeting.size()));
  std::string answer;
  char byte = 0;
  while (read(fd, &byte, 1) == 1) answer.push_back(byte);
  close(fd);
  EXPECT_EQ(answer.find(std::string(kDataMagic.data(), kDataMagic.size())), std::string::npos);
  EXPECT_EQ(opened_.get_future().wait_for(seconds(0)), std::future_status::timeout);
}

TEST_F(DataConnectionTest, WorkerHearsThatTheTrainerHasGone) {
  const DataOffer offer{.id = 10, .key = ""};
  Expect(offer);
  Dial(Peer(), offer);
  const std::shared_ptr<DataConnection> connection = Opened();
  ASSERT_NE(connection, nullptr);
  receiver_.reset();
  std::future<absl::Status> broken = broken_.get_future();
  std::future_status state = std::future_status::timeout;
  for (int i = 0; i < 600 && state != std::future_status::ready; ++i) {
    std::deque<grpc::ByteBuffer> frames = {BatchFrame(i, 1000)};
    connection->Send(&frames);
    state = broken.wait_for(std::chrono::milliseconds(100));
  }
  ASSERT_EQ(state, std::future_status::ready);
  EXPECT_TRUE(absl::IsUnavailable(broken.get()));
}

TEST_F(DataConnectionTest, NobodyThereHasNotTakenItUp) {
  const int port = listener_->port();
  listener_.reset();
  Dial("ipv4:127.0.0.1:" + std::to_string(port), {.id = 11, .key = ""});
  const auto [status, taken] = Ended();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_FALSE(taken);
}

// Such as a worker of another version, which takes the connection for a damaged one of gRPC's.
TEST_F(DataConnectionTest, ClosedWithoutAnAnswerWasNotTakenUp) {
  listener_.reset();
  auto listener = FeedListener::Bind("127.0.0.1:0", base::Clock::Real());
  ASSERT_TRUE(listener.ok());
  listener_ = *std::move(listener);
  Listen([](int connection) { close(connection); });
  Dial(Peer(), {.id = 12, .key = ""});
  const auto [status, taken] = Ended();
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(taken);
  EXPECT_EQ(answers_, 0);
}

// Anybody may dial a worker's port, and say a byte now and then.
class Drippers {
 public:
  // `count` connections that have said the first bytes of a greeting.
  Drippers(int port, int count) {
    for (int i = 0; i < count; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in address = {};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<uint16_t>(port));
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
      EXPECT_EQ(write(fd, kDataMagic.data(), kDataMagic.size()),
                static_cast<ssize_t>(kDataMagic.size()));
      fds_.push_back(fd);
    }
  }
  ~Drippers() {
    for (const int fd : fds_) close(fd);
  }
  Drippers(const Drippers&) = delete;
  Drippers& operator=(const Drippers&) = delete;

  int first() const { return fds_.front(); }

 private:
  std::vector<int> fds_;
};

TEST_F(DataConnectionTest, ManyWhoSayNothingMoreKeepNobodyOut) {
  const Drippers drippers(listener_->port(), 200);
  const DataOffer offer{.id = 13, .key = NewDataKey()};
  Expect(offer);
  Dial(Peer(), offer);
  EXPECT_NE(Opened(), nullptr);
  char byte = 0;
  EXPECT_LE(read(drippers.first(), &byte, 1), 0);  // the oldest were given up
}

TEST(DataConnections, OneWhoDripsItsGreetingHasOneDeadlineForAllOfIt) {
  base::FakeClock clock;
  DataConnections connections(clock);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  connections.Accept(ends[0]);
  const std::string greeting(kDataMagic.data(), kDataMagic.size());
  // Each byte in time, all of them not.
  ssize_t sent = 1;
  for (int i = 0; i < 12 && sent == 1; ++i) {
    sent = send(ends[1], &greeting[static_cast<size_t>(i) % greeting.size()], 1, MSG_NOSIGNAL);
    clock.Advance(seconds(2));
  }
  pollfd closed = {.fd = ends[1], .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&closed, 1, 20'000), 1);
  char byte = 0;
  EXPECT_LE(read(ends[1], &byte, 1), 0);
  close(ends[1]);
}

TEST_F(DataConnectionTest, AFrameOfMoreThanTheBudgetEndsTheConnectionBeforeThereIsMemoryForIt) {
  const DataOffer offer{.id = 14, .key = ""};
  Expect(offer);
  most_bytes_ = 10'000;
  Dial(Peer(), offer);
  const std::shared_ptr<DataConnection> connection = Opened();
  ASSERT_NE(connection, nullptr);
  std::deque<grpc::ByteBuffer> frames = {BatchFrame(1, 100), BatchFrame(2, 2000)};
  connection->Send(&frames);
  const auto [status, taken] = Ended();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_TRUE(taken);
  EXPECT_EQ(frames_.size(), 1u);
}

// One that only ended the connection would come again for ever, with nothing said against it.
TEST_F(DataConnectionTest, ABatchForWhichTheTrainerHasNoMemoryFails) {
  const DataOffer offer{.id = 15, .key = ""};
  Expect(offer);
  open_memory_ = [](const v1::FrameHeader& header, int64_t bytes) {
    if (bytes == 12 * 200) throw std::bad_alloc();
    return NoMemory(header, bytes);
  };
  Dial(Peer(), offer);
  const std::shared_ptr<DataConnection> connection = Opened();
  ASSERT_NE(connection, nullptr);
  std::deque<grpc::ByteBuffer> frames = {BatchFrame(1, 100), BatchFrame(2, 200)};
  connection->Send(&frames);
  const auto [status, taken] = Ended();
  EXPECT_EQ(status.message(), "no memory in the trainer for the batch of ticket 2");
  EXPECT_TRUE(taken);
  ASSERT_EQ(frames_.size(), 2u);
  EXPECT_EQ(frames_[1].kind, Frame::Kind::kFailed);
  EXPECT_EQ(frames_[1].ticket.id, 2);
  EXPECT_TRUE(absl::IsInternal(frames_[1].error)) << "no CPU worker lacked memory";
  EXPECT_EQ(frames_[1].error.message(), status.message());
}

TEST_F(DataConnectionTest, WaitingOnesEndWithTheWorker) {
  auto connections = std::make_unique<DataConnections>(base::Clock::Real());
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  connections->Accept(ends[0]);
  connections.reset();  // although nothing was ever said
  char byte = 0;
  EXPECT_EQ(read(ends[1], &byte, 1), 0);
  close(ends[1]);
}

TEST(DataReceiver, TakesAddressesAsGrpcWritesThem) {
  SocketThreads threads("test", 1, base::Clock::Real());
  const auto start = [&](const std::string& peer) {
    return DataReceiver::Start(
               peer, {.id = 1, .key = ""},
               {.on_answer = [] {}, .on_frame = [](Frame) {}, .on_end = [](auto&, bool) {}},
               threads)
        .status();
  };
  EXPECT_TRUE(start("ipv4:127.0.0.1:9").ok());
  EXPECT_TRUE(start("ipv6:%5B::1%5D:9").ok() ||
              start("ipv6:%5B::1%5D:9").code() == absl::StatusCode::kUnavailable);
  for (const char* peer :
       {"unix:/run/cpu.sock", "ipv4:localhost:9", "ipv4:127.0.0.1", "ipv6::1", "", "noise"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(start(peer))) << peer;
  }
}

}  // namespace
}  // namespace hetero::feed
