#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/storage/open_store.h"
#include "tests/integration/storage/fault_proxy.h"
#include "tests/integration/storage/s3_server.h"

// What a store gives is right, whatever befalls replies on their way, or it is an error that names
// the object.
namespace hetero::storage {
namespace {

using Fault = FaultProxy::Fault;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FaultTest : public ::testing::Test {
 protected:
  FaultTest() {
    server_.MakeBucket("bucket");
    for (int i = 0; bytes_.size() < 100'000; ++i) absl::StrAppend(&bytes_, i, " ");
    WriteWhole(bytes_);
  }

  void WriteWhole(const std::string& bytes) {
    const auto store = *OpenWritableStore("s3://bucket", server_.Options());
    auto writer = *store->Create("object");
    ASSERT_TRUE(
        writer->Append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}).ok());
    ASSERT_TRUE(writer->Close().ok());
  }

  StoreOptions Options(const FaultProxy& proxy) const {
    StoreOptions options = server_.Options();
    options.endpoint = proxy.url();
    options.retries.backoff.initial = std::chrono::milliseconds(2);
    options.retries.backoff.max = std::chrono::milliseconds(20);
    options.deadlines.idle = std::chrono::milliseconds(250);
    return options;
  }

  S3Server server_;
  std::string bytes_;
};

TEST_F(FaultTest, BytesAreRightUnderAllFaultsAtOnce) {
  // Two of three requests fail, each in its own way; nine in a row for one caller are unlikely.
  std::atomic<int> faults = 0;
  FaultProxy proxy(server_.endpoint(), [&faults](int number) {
    std::mt19937 random(static_cast<unsigned>(number) * 7919 + 1);
    random.discard(3);
    if (random() % 3 == 0) return Fault::kNone;
    ++faults;
    // Silence costs a quarter of a second, so it is rarer.
    const auto fault = static_cast<Fault>(1 + random() % (FaultProxy::kFaults - 1));
    return fault == Fault::kSilence && random() % 4 != 0 ? Fault::kSlowDown : fault;
  });
  StoreOptions options = Options(proxy);
  options.retries.most_attempts = 40;
  const auto store = *OpenStore("s3://bucket", options);
  const absl::StatusOr<Object> object = store->Head("object");
  ASSERT_TRUE(object.ok()) << object.status();
  std::vector<std::jthread> readers;
  for (int reader = 0; reader < 8; ++reader) {
    readers.emplace_back([&, reader] {
      std::mt19937 random(static_cast<unsigned>(reader));
      for (int i = 0; i < 25; ++i) {
        const size_t offset = random() % (bytes_.size() - 1);
        const size_t length = 1 + random() % std::min<size_t>(20'000, bytes_.size() - offset);
        std::string text(length, '?');
        const absl::Status status = store->Read(*object, static_cast<int64_t>(offset),
                                                {reinterpret_cast<uint8_t*>(text.data()), length});
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_TRUE(text == bytes_.substr(offset, length)) << offset << " " << length;
      }
    });
  }
  readers.clear();
  EXPECT_GT(faults, 100);
}

TEST_F(FaultTest, WhatDoesNotEndIsNamedAfterItsAttempts) {
  const std::pair<Fault, const char*> cases[] = {
      {Fault::kSlowDown, "HTTP 503 SlowDown: Reduce your request rate. (request id PROXY)"},
      {Fault::kServerError, "HTTP 500"},
      {Fault::kNoReply, "Empty reply"},
      {Fault::kCutBody, "5000 bytes remaining"},
      {Fault::kLessBody, "only 5000 came"},
      {Fault::kMoreBody, "more bytes came"},
      {Fault::kOtherRange, "bytes 0 to 9999 came"},
      {Fault::kSilence, "said nothing for 0.25 s"},
  };
  const Object object = *(*OpenStore("s3://bucket", server_.Options()))->Head("object");
  for (const auto& [fault, text] : cases) {
    SCOPED_TRACE(text);
    FaultProxy proxy(server_.endpoint(), [fault = fault](int) { return fault; });
    StoreOptions options = Options(proxy);
    options.retries.most_attempts = 3;
    const auto store = *OpenStore("s3://bucket", options);
    std::vector<uint8_t> out(10'000);
    const absl::Status status = store->Read(object, 100, absl::MakeSpan(out));
    // Neither says anything of the object, so no sample in it is to blame.
    EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("cannot read s3://bucket/object, bytes 100 to 10099: "),
                      HasSubstr(text), HasSubstr("tried 3 times in ")));
    EXPECT_EQ(proxy.requests(), 3);
  }
}

TEST_F(FaultTest, AnObjectThatIsReplacedBetweenAttemptsIsNeverMixed) {
  FaultProxy proxy(server_.endpoint(), [this](int number) {
    if (number == 1) WriteWhole(std::string(bytes_.size(), 'x'));
    return number == 0 ? Fault::kCutBody : Fault::kNone;
  });
  const auto store = *OpenStore("s3://bucket", Options(proxy));
  const Object object = *(*OpenStore("s3://bucket", server_.Options()))->Head("object");
  std::vector<uint8_t> out(1000);
  const absl::Status status = store->Read(object, 0, absl::MakeSpan(out));
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("s3://bucket/object"), HasSubstr("changed")));
}

// As samples are read that might end a process (runtime/feed/guarded_samples.cpp): in children of a
// process whose threads read on. They have the parent's connections, and its locks as they were.
TEST_F(FaultTest, ChildrenReadBesideTheirParentsThreads) {
#ifdef __SANITIZE_ADDRESS__
  // Its allocator's locks stay locked in a child when another thread has them at the fork (GCC 12).
  GTEST_SKIP() << "AddressSanitizer's own allocator does not survive fork() beside threads";
#endif
  const auto store = *OpenStore("s3://bucket", server_.Options());
  const Object object = *store->Head("object");
  const auto reads = [&](int reader) {
    std::string text(1000, '?');
    const size_t offset = static_cast<size_t>(reader) * 937 % 99'000;
    return store
               ->Read(object, static_cast<int64_t>(offset),
                      {reinterpret_cast<uint8_t*>(text.data()), text.size()})
               .ok() &&
           text == bytes_.substr(offset, text.size());
  };
  std::atomic<int> wrong = 0;
  std::atomic<bool> enough = false;
  std::vector<std::jthread> readers;
  for (int reader = 0; reader < 4; ++reader) {
    readers.emplace_back([&, reader] {
      for (int i = reader; !enough; i += 4) wrong += reads(i) ? 0 : 1;
    });
  }
  for (int round = 0; round < 25; ++round) {
    std::vector<pid_t> children;
    for (int child = 0; child < 4; ++child) {
      children.push_back(fork());
      if (children.back() != 0) continue;
      alarm(20);  // ends one that waits for a lock
      bool right = true;
      for (int i = 0; i < 5; ++i) right = right && reads(round + 25 * child + 100 * i);
      _exit(right ? 0 : 1);
    }
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0) << "round " << round;
    }
    if (HasFailure()) break;
  }
  enough = true;
  readers.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_F(FaultTest, ALongWriteThroughFaultsIsWhole) {
  FaultProxy proxy(server_.endpoint(), [](int number) {
    const Fault faults[] = {Fault::kSlowDown,    Fault::kNone, Fault::kNoReply, Fault::kNone,
                            Fault::kServerError, Fault::kNone, Fault::kCutBody, Fault::kNone};
    return faults[number % 8];
  });
  StoreOptions options = Options(proxy);
  options.part_bytes = 5 << 20;
  const auto store = *OpenWritableStore("s3://bucket", options);
  std::string bytes;
  while (bytes.size() < (11 << 20)) bytes += bytes_;
  auto writer = *store->Create("long");
  ASSERT_TRUE(writer->Append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}).ok());
  const absl::StatusOr<Object> object = writer->Close();
  ASSERT_TRUE(object.ok()) << object.status();
  const auto plain = *OpenStore("s3://bucket", server_.Options());
  std::string text(bytes.size(), '?');
  const absl::Status status =
      plain->Read(*plain->Head("long"), 0, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(text == bytes);
}

}  // namespace
}  // namespace hetero::storage
