// Ranks that die or freeze while the others form a group with them.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "runtime/train/process_group/group_former.h"
#include "tests/unit/runtime/train/memory_store.h"

namespace hetero::train {
namespace {

// Lets a rank come as far as its `last`-th call, where it freezes until Release(), and then fails.
class FailingStore : public KeyValueStore {
 public:
  FailingStore(std::shared_ptr<KeyValueStore> store, int last, bool freezes)
      : store_(std::move(store)), last_(last), freezes_(freezes) {}

  absl::Status Set(const std::string& key, const std::string& value) override {
    if (absl::Status status = Pass(); !status.ok()) return status;
    return store_->Set(key, value);
  }
  absl::StatusOr<std::string> Get(const std::string& key, base::Duration timeout) override {
    if (absl::Status status = Pass(); !status.ok()) return status;
    return store_->Get(key, timeout);
  }
  absl::Status Wait(const std::vector<std::string>& keys, base::Duration timeout) override {
    if (absl::Status status = Pass(); !status.ok()) return status;
    return store_->Wait(keys, timeout);
  }
  absl::StatusOr<bool> Check(const std::vector<std::string>& keys) override {
    if (absl::Status status = Pass(); !status.ok()) return status;
    return store_->Check(keys);
  }
  absl::StatusOr<int64_t> Add(const std::string& key, int64_t amount) override {
    if (absl::Status status = Pass(); !status.ok()) return status;
    return store_->Add(key, amount);
  }
  absl::StatusOr<std::string> CompareSet(const std::string& key, const std::string& expected,
                                         const std::string& desired) override {
    if (absl::Status status = Pass(); !status.ok()) return status;
    return store_->CompareSet(key, expected, desired);
  }
  absl::StatusOr<bool> Delete(const std::string& key) override { return store_->Delete(key); }
  absl::StatusOr<int64_t> CountKeys() override { return store_->CountKeys(); }

  // Waits until the rank is stuck, or has no more calls to make.
  void WaitUntilStuck() {
    const base::MutexLock lock(mutex_);
    changed_.Wait(mutex_,
                  [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stuck_ || ended_; });
  }
  void End() {
    const base::MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }
  void Release() {
    const base::MutexLock lock(mutex_);
    released_ = true;
    changed_.NotifyAll();
  }
  bool stuck() {
    const base::MutexLock lock(mutex_);
    return stuck_;
  }

 private:
  absl::Status Pass() {
    const base::MutexLock lock(mutex_);
    if (++calls_ <= last_) return absl::OkStatus();
    stuck_ = true;
    changed_.NotifyAll();
    if (freezes_) {
      changed_.Wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return released_; });
    }
    return absl::UnavailableError("this rank is gone");
  }

  const std::shared_ptr<KeyValueStore> store_;
  const int last_;
  const bool freezes_;
  base::Mutex mutex_;
  base::CondVar changed_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stuck_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
};

GlooGroup::Options MakeOptions(int32_t rank, int64_t generation,
                               std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  return {.rank = rank,
          .world_size = 2,
          .generation = generation,
          .host = "127.0.0.1",
          .connect_timeout = timeout};
}

// Of groups that come to nothing: how long what is left of them may linger.
constexpr std::chrono::seconds kShort(2);

void ExpectFormed(GlooGroup& group) {
  torch::Tensor one = torch::ones({1});
  group.SumControl(one);
  EXPECT_EQ(one.item<float>(), 2);
}

class GroupFormingTest : public ::testing::TestWithParam<bool> {};

// At every call that a rank makes while it forms: the other gives up when told to, and the next
// group forms while the attempt before may still wait inside Gloo.
TEST_P(GroupFormingTest, ARankThatFailsAtAnyMomentHoldsNobodyUp) {
  const auto memory = std::make_shared<MemoryStore>();
  GroupFormer former(base::Clock::Real());
  int64_t generation = 0;
  int stuck = 0;
  for (int last = 0; last < 40; ++last) {
    ++generation;
    const auto failing = std::make_shared<FailingStore>(memory, last, GetParam());
    std::atomic<bool> formed = false;
    std::jthread peer([&, generation] {
      try {
        const GlooGroup group(MakeOptions(1, generation, kShort), failing, base::Clock::Real(), {});
        formed = true;
      } catch (const std::exception&) {
        // as meant
      }
      failing->End();
    });
    std::stop_source interrupt;
    std::jthread interrupter([&] {
      failing->WaitUntilStuck();
      if (failing->stuck()) interrupt.request_stop();
    });
    std::shared_ptr<GlooGroup> group;
    try {
      group = former.Form(MakeOptions(0, generation, kShort), memory, interrupt.get_token());
    } catch (const std::exception&) {
      // the connection broke before the interrupt came
    }
    interrupter.join();
    if (failing->stuck()) {
      ++stuck;
      ++generation;
      std::jthread replacement([&, generation] {
        GlooGroup next(MakeOptions(1, generation), memory, base::Clock::Real(), {});
        ExpectFormed(next);
      });
      const auto next = former.Form(MakeOptions(0, generation), memory, {});
      ASSERT_NE(next, nullptr);
      ExpectFormed(*next);
    }
    failing->Release();
    peer.join();
    if (formed) break;
  }
  EXPECT_GT(stuck, 4);
  EXPECT_LT(stuck, 40) << "the peer was never let through";
}

INSTANTIATE_TEST_SUITE_P(KilledOrFrozen, GroupFormingTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Frozen" : "Killed"; });

}  // namespace
}  // namespace hetero::train
