#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "runtime/feed/sample_producer.h"

namespace hetero::feed {

// What reading a sample does to the process.
enum class Harm { kBadBytes, kAbort, kKill, kExit, kHunger, kHungerAndAbort, kHang };

// A number that this process and its children share.
class SharedCount {
 public:
  SharedCount() {
    void* memory =
        mmap(nullptr, sizeof(*value_), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    value_ = new (memory) std::atomic<int>(0);
  }
  ~SharedCount() { munmap(value_, sizeof(*value_)); }
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;
  std::atomic<int>& operator*() { return *value_; }

 private:
  std::atomic<int>* value_;
};

// Raw 2 x 2 x 1 pictures filled with their id, one of which does harm.
class HarmfulDataset : public source::Dataset {
 public:
  // `times`: how often; counted over all processes in `done`, where given.
  HarmfulDataset(int64_t samples, int64_t harmful, Harm harm, SharedCount* done = nullptr,
                 int times = 0)
      : samples_(samples), harmful_(harmful), harm_(harm), done_(done), times_(times) {}

  int64_t size() const override { return samples_; }
  int32_t classes() const override { return 4; }
  api::ImageShape image() const override { return {2, 2, 1}; }
  absl::Status Read(int64_t id, source::RawSample* sample) const override {
    if (id == harmful_ && (done_ == nullptr || (**done_)++ < times_)) {
      if (harm_ == Harm::kBadBytes) return absl::DataLossError("damaged");
      DoHarm();
    }
    sample->encoding = source::Encoding::kRaw;
    sample->shape = image();
    sample->bytes.assign(4, static_cast<uint8_t>(id));
    sample->label = static_cast<int32_t>(id % 4);
    return absl::OkStatus();
  }
  std::string Describe(int64_t id) const override { return std::to_string(id) + ".jpg"; }
  std::string fingerprint() const override { return "0123456789abcdef"; }

 private:
  static constexpr size_t kPortion = size_t{64} << 20;

  // A sanitizer would report it, as if nobody had expected it.
  [[noreturn]] static void Abort() {
    std::signal(SIGABRT, SIG_DFL);
    std::abort();
  }

  void DoHarm() const {
    switch (harm_) {
      case Harm::kBadBytes:
        return;
      case Harm::kAbort:
        Abort();
      case Harm::kKill:
        kill(getpid(), SIGKILL);
        return;
      case Harm::kExit:
        _exit(0);
      case Harm::kHunger: {
        std::vector<std::vector<char>> taken;
        while (true) taken.emplace_back(kPortion);
      }
      case Harm::kHungerAndAbort: {
        std::vector<std::unique_ptr<char[]>> taken;
        while (true) {
          taken.emplace_back(new (std::nothrow) char[kPortion]());
          if (taken.back() == nullptr) Abort();
        }
      }
      case Harm::kHang:
        while (true) pause();
    }
  }

  const int64_t samples_;
  const int64_t harmful_;
  const Harm harm_;
  SharedCount* const done_;
  const int times_;
};

}  // namespace hetero::feed
