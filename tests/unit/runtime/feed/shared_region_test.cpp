#include "runtime/feed/transport/shared_region.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "counting_producer.h"
#include "hetero/v1/feed.pb.h"
#include "runtime/feed/transport/region_socket.h"
#include "runtime/feed/wire/messages.h"

// The checks of a sanitizer open pipes, and end the process where there is no descriptor for them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HETERO_NEEDS_DESCRIPTORS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HETERO_NEEDS_DESCRIPTORS
#endif
#endif

namespace hetero::feed {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kKiB = 1024;

struct Pair {
  std::shared_ptr<TrainerRegion> trainer;
  std::shared_ptr<WorkerRegion> worker;
};

Pair MakePair(int64_t bytes) {
  auto trainer = TrainerRegion::Create(bytes);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  auto mapped = SharedRegion::Map(dup((*trainer)->fd()), SharedRegion::Side::kWorker);
  EXPECT_TRUE(mapped.ok()) << mapped.status();
  return {*trainer, std::make_shared<WorkerRegion>(*mapped)};
}

absl::StatusOr<Slab> Open(const Pair& pair, const v1::FrameHeader& header, int64_t bytes) {
  return pair.trainer->Open({header.shared().flag(), header.shared().offset()}, bytes);
}

// What a worker does with a batch of `bytes` equal bytes; the trainer's view of it.
Slab Pass(const Pair& pair, int64_t bytes, uint8_t value) {
  std::optional<Slab> written = pair.worker->Allocate(bytes);
  EXPECT_TRUE(written.has_value());
  std::memset(written->data(), value, static_cast<size_t>(bytes));
  v1::FrameHeader header;
  EXPECT_TRUE(written->HandOver(&header));
  EXPECT_EQ(written->size(), 0);
  absl::StatusOr<Slab> read = Open(pair, header, bytes);
  EXPECT_TRUE(read.ok()) << read.status();
  return *std::move(read);
}

bool Holds(const Slab& slab, uint8_t value) {
  for (int64_t i = 0; i < slab.size(); ++i) {
    if (slab.data()[i] != value) return false;
  }
  return slab.size() > 0;
}

TEST(SharedRegionTest, BatchIsReadWhereItWasWritten) {
  const Pair pair = MakePair(64 * kKiB);
  const Slab batch = Pass(pair, 10'000, 7);
  EXPECT_TRUE(batch.shared());
  EXPECT_TRUE(Holds(batch, 7));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(batch.data()) % 64, 0u);
}

TEST(SharedRegionTest, PlaceIsNotUsedAgainBeforeTheTrainerIsDoneWithIt) {
  const Pair pair = MakePair(64 * kKiB);
  Slab first = Pass(pair, 20 * kKiB, 1);
  Slab second = Pass(pair, 20 * kKiB, 2);
  for (int i = 0; i < 5000; ++i) Pass(pair, 20 * kKiB, 3);  // read and given back at once
  EXPECT_TRUE(Holds(first, 1));
  EXPECT_TRUE(Holds(second, 2));
  const uint8_t* place = first.data();
  first = {};
  EXPECT_EQ(Pass(pair, 20 * kKiB, 4).data(), place);  // the lowest free one
  EXPECT_TRUE(Holds(second, 2));
}

TEST(SharedRegionTest, FullRegionSaysSoAndHasRoomAgain) {
  const Pair pair = MakePair(64 * kKiB);
  std::vector<Slab> held;
  for (int i = 0; i < 4; ++i) held.push_back(Pass(pair, 16 * kKiB, 5));
  EXPECT_FALSE(pair.worker->Allocate(1).has_value());
  held.erase(held.begin() + 1, held.begin() + 3);
  EXPECT_FALSE(pair.worker->Allocate(33 * kKiB).has_value());
  EXPECT_TRUE(pair.worker->Allocate(32 * kKiB).has_value());  // and dropped by the worker itself
  EXPECT_TRUE(pair.worker->Allocate(32 * kKiB).has_value());
}

TEST(SharedRegionTest, NoMoreBatchesThanFlags) {
  const Pair pair = MakePair((SharedRegion::kFlags + 8) * 4 * kKiB);
  std::vector<Slab> held;
  for (uint32_t i = 0; i < SharedRegion::kFlags; ++i) held.push_back(Pass(pair, 1, 1));
  EXPECT_FALSE(pair.worker->Allocate(1).has_value());
  held.pop_back();
  EXPECT_TRUE(pair.worker->Allocate(1).has_value());
}

TEST(SharedRegionTest, MemoryThatIsNotNeededAnyMoreIsGivenBack) {
  const Pair pair = MakePair(1024 * kKiB);
  EXPECT_LT(pair.worker->backed_bytes(), 8 * kKiB);
  {
    std::vector<Slab> held;
    for (int i = 0; i < 10; ++i) held.push_back(Pass(pair, 100 * kKiB, 6));
    EXPECT_GE(pair.worker->backed_bytes(), 1000 * kKiB);
  }
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Holds(Pass(pair, 100 * kKiB, 7), 7));
  EXPECT_LT(pair.worker->backed_bytes(), 300 * kKiB);
}

TEST(SharedRegionTest, BatchesOutliveBothSides) {
  Pair pair = MakePair(64 * kKiB);
  const Slab batch = Pass(pair, 16 * kKiB, 9);
  std::optional<Slab> unsent = pair.worker->Allocate(16 * kKiB);
  pair = {};
  EXPECT_TRUE(Holds(batch, 9));
  std::memset(unsent->data(), 1, 16 * kKiB);
}

TEST(SharedRegionTest, PartsOutsideTheRegionAreRefused) {
  const Pair pair = MakePair(64 * kKiB);
  const auto size = static_cast<uint64_t>(pair.trainer->size());
  for (const auto& [part, bytes] :
       {std::pair(SharedPart{SharedRegion::kFlags, 4096}, int64_t{1}),
        std::pair(SharedPart{0, 0}, int64_t{1}), std::pair(SharedPart{0, size - 8}, int64_t{9}),
        std::pair(SharedPart{0, ~uint64_t{0}}, int64_t{2}),
        std::pair(SharedPart{0, 4096}, static_cast<int64_t>(size))}) {
    EXPECT_TRUE(absl::IsDataLoss(pair.trainer->Open(part, bytes).status())) << part.offset;
  }
  EXPECT_TRUE(pair.trainer->Open({0, size - 8}, 8).ok());
}

// Whoever could cut the file shorter could end the other side.
TEST(SharedRegionTest, FileThatCanBeCutShorterIsRefused) {
  const int open = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(open, 64 * kKiB), 0);
  EXPECT_TRUE(
      absl::IsInvalidArgument(SharedRegion::Map(open, SharedRegion::Side::kWorker).status()));
  const int folder = ::open("/", O_RDONLY | O_CLOEXEC);
  EXPECT_FALSE(SharedRegion::Map(folder, SharedRegion::Side::kWorker).ok());
  EXPECT_NE(fcntl(open, F_GETFD), 0);  // taken over, and closed
}

TEST(SharedRegionTest, RefusalOfTheSystemIsAnError) {
  std::thread refused([] {  // a filter is a thread's own
    std::array<sock_filter, 4> program = {
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog filter = {.len = program.size(), .filter = program.data()};
    ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return;  // a kernel without
    EXPECT_TRUE(absl::IsPermissionDenied(TrainerRegion::Create(kKiB).status()));
  });
  refused.join();
}

// The system would end a process that goes over this limit.
TEST(SharedRegionTest, FileSizeLimitIsKept) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const Pair pair = MakePair(1024 * kKiB);
  const rlimit low = {.rlim_cur = 256 * kKiB, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(TrainerRegion::Create(512 * kKiB).status()));
  EXPECT_FALSE(pair.worker->Allocate(512 * kKiB).has_value());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST(SharedRegionTest, FrameOnlyNamesTheBatchAndDamageIsFound) {
  const Pair pair = MakePair(64 * kKiB);
  const CountingProducer producer;
  const Ticket ticket = {.id = 4, .slots = {2, 5}};
  const auto encode = [&](bool damage) {
    auto batch = std::make_unique<Batch>(
        producer.Allocate(ticket, [&](int64_t bytes) { return *pair.worker->Allocate(bytes); }));
    for (int64_t i = 0; i < ticket.slots.count; ++i) {
      std::optional<BadSample> bad;
      EXPECT_TRUE(producer.Produce(batch.get(), i, &bad).ok());
    }
    if (damage) batch->images.data()[3] ^= 1;
    return EncodeBatch(std::move(batch));
  };
  const OpenMemory open = [&](const v1::FrameHeader& header,
                              int64_t bytes) -> absl::StatusOr<NamedMemory> {
    absl::StatusOr<Slab> slab = Open(pair, header, bytes);
    if (!slab.ok()) return slab.status();
    return NamedMemory{*std::move(slab), "here"};
  };
  const auto good = DecodeFrame(encode(false), open);
  ASSERT_TRUE(good.ok()) << good.status();
  ASSERT_EQ(good->kind, Frame::Kind::kBatch);
  EXPECT_TRUE(good->batch->images.shared());
  EXPECT_EQ(good->transport, "here");
  EXPECT_EQ(good->batch->images.data()[12], static_cast<uint8_t>(3 * 7));
  const auto bad = DecodeFrame(encode(true), open);
  ASSERT_TRUE(bad.ok());
  EXPECT_TRUE(bad->damaged);
  EXPECT_TRUE(absl::IsDataLoss(DecodeFrame(encode(false)).status()));  // a stream without a region
}

class RegionSocketTest : public ::testing::Test {
 protected:
  RegionSocketTest() {
    std::string name = (std::filesystem::temp_directory_path() / "hetero-region-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = RegionSocketPath("unix:" + folder_ + "/cpu");
  }
  ~RegionSocketTest() override { std::filesystem::remove_all(folder_); }

  // Polls: Take() does not wait.
  static std::shared_ptr<WorkerRegion> WaitFor(RegionReceiver* receiver, uint64_t token) {
    std::shared_ptr<WorkerRegion> region;
    for (int i = 0; i < 6000 && region == nullptr; ++i) {
      region = receiver->Take(token);
      if (region == nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return region;
  }

  // Connects `fd`, a unix socket.
  void Connect(int fd) const {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, path_.size());
    ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  // The first `size` bytes of `token`, and `files`, two at most.
  static void Send(int fd, uint64_t token, size_t size, const std::vector<int>& files) {
    iovec text = {.iov_base = &token, .iov_len = size};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control = {};
    const size_t bytes = files.size() * sizeof(int);
    msghdr message = {};
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(part), files.data(), bytes);
    ASSERT_EQ(sendmsg(fd, &message, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }

  std::string folder_, path_;
};

class CountingClock : public base::Clock {
 public:
  base::Instant Now() const override { return base::Clock::Real().Now(); }
  base::WallTime WallNow() const override { return base::Clock::Real().WallNow(); }
  bool SleepFor(base::Duration, std::stop_token stop) override {
    ++sleeps;
    return base::Clock::Real().SleepFor(std::chrono::milliseconds(1), std::move(stop));
  }

  std::atomic<int> sleeps = 0;
};

TEST_F(RegionSocketTest, RegionArrivesAndIsTakenOnce) {
  const auto receiver = RegionReceiver::Start(path_, base::Clock::Real());
  ASSERT_NE(receiver, nullptr);
  const auto region = TrainerRegion::Create(64 * kKiB);
  ASSERT_TRUE(region.ok());
  // Connections that bring nothing do not keep it.
  for (int i = 0; i < 3; ++i) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_NO_FATAL_FAILURE(Connect(fd));
    if (i > 0) (void)!write(fd, "garbage!", i == 1 ? 8 : 3);
    close(fd);
  }
  ASSERT_TRUE(SendRegion(path_, **region).ok());
  const std::shared_ptr<WorkerRegion> worker = WaitFor(receiver.get(), (*region)->token());
  ASSERT_NE(worker, nullptr);
  EXPECT_TRUE(Holds(Pass({*region, worker}, 16 * kKiB, 3), 3));
  EXPECT_EQ(receiver->Take((*region)->token()), nullptr);
  EXPECT_EQ(receiver->Take(1), nullptr);
}

TEST_F(RegionSocketTest, AMessageWithTwoFilesLeavesNoneOpen) {
  const auto receiver = RegionReceiver::Start(path_, base::Clock::Real());
  ASSERT_NE(receiver, nullptr);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_NO_FATAL_FAILURE(Connect(fd));
  constexpr uint64_t token = 5;
  ASSERT_NO_FATAL_FAILURE(Send(fd, token, sizeof token, {ends[1], ends[1]}));
  close(ends[1]);
  pollfd over = {.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&over, 1, 10'000), 1);  // every other end is closed
  close(ends[0]);
  close(fd);
  EXPECT_EQ(receiver->Take(token), nullptr);
}

TEST_F(RegionSocketTest, ARegionWhoseTokenIsCutIsRefusedWithThatReason) {
  const auto receiver = RegionReceiver::Start(path_, base::Clock::Real());
  ASSERT_NE(receiver, nullptr);
  const auto region = TrainerRegion::Create(64 * kKiB);
  ASSERT_TRUE(region.ok());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_NO_FATAL_FAILURE(Connect(fd));
  ::testing::internal::CaptureStderr();
  Send(fd, (*region)->token(), 3, {(*region)->fd()});
  close(fd);
  EXPECT_TRUE(SendRegion(path_, **region).ok());  // which is looked at after it
  EXPECT_NE(WaitFor(receiver.get(), (*region)->token()), nullptr);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("a shared region was refused"));
  EXPECT_THAT(said, HasSubstr("its token ends after 3 of 8 bytes"));
}

// A core was busy with asking again, and nothing was said.
TEST_F(RegionSocketTest, WhereNoDescriptorIsLeftItPausesAndSaysSoOnce) {
#ifdef HETERO_NEEDS_DESCRIPTORS
  GTEST_SKIP() << "a sanitizer needs descriptors of its own";
#endif
  CountingClock clock;
  const auto receiver = RegionReceiver::Start(path_, clock);
  ASSERT_NE(receiver, nullptr);
  const auto region = TrainerRegion::Create(64 * kKiB);
  ASSERT_TRUE(region.ok());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  ::testing::internal::CaptureStderr();
  const rlimit none = {.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  Connect(fd);
  for (int i = 0; i < 2000 && clock.sleeps < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_GE(clock.sleeps, 3);
  const std::string warning = "the system refuses its connection";
  EXPECT_THAT(said, HasSubstr(warning));
  EXPECT_EQ(said.find(warning), said.rfind(warning));
  close(fd);
  EXPECT_TRUE(SendRegion(path_, **region).ok());
  EXPECT_NE(WaitFor(receiver.get(), (*region)->token()), nullptr);
}

TEST_F(RegionSocketTest, NobodyThereIsAnError) {
  const auto region = TrainerRegion::Create(64 * kKiB);
  ASSERT_TRUE(region.ok());
  EXPECT_TRUE(absl::IsUnavailable(SendRegion(path_, **region)));
}

TEST_F(RegionSocketTest, OnlyUnixSocketsHaveOneBesideThem) {
  EXPECT_EQ(RegionSocketPath("unix:/run/cpu-0"), "/run/cpu-0.mem");
  EXPECT_EQ(RegionSocketPath("unix:///run/cpu-0"), "/run/cpu-0.mem");
  EXPECT_EQ(RegionSocketPath("10.0.0.1:7080"), "");
  EXPECT_EQ(RegionSocketPath("unix:/" + std::string(103, 'a')), "");
}

}  // namespace
}  // namespace hetero::feed
