#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "runtime/feed/wire/batch.h"

namespace hetero::feed {

// The samples of a job that are known to end the process which touches them. Only grows. Safe from
// any thread, and Find() in a child of fork(), whatever other threads were doing.
class FatalSamples {
 public:
  static constexpr int64_t kMost = 4096;  // each is a link that Find() may look at

  FatalSamples() = default;
  ~FatalSamples();
  FatalSamples(const FatalSamples&) = delete;
  FatalSamples& operator=(const FatalSamples&) = delete;

  // Ignored when it is known, or kMost are.
  void Add(const FatalSample& sample);
  // Why it is; null for any other sample. Valid as long as this object.
  const std::string* Find(job::Split split, int64_t id) const;
  std::vector<FatalSample> All() const;  // in the order in which they were added

 private:
  struct Link {
    FatalSample sample;
    const Link* older = nullptr;
  };

  base::Mutex adding_;
  int64_t count_ ABSL_GUARDED_BY(adding_) = 0;
  std::atomic<const Link*> newest_{nullptr};
};

}  // namespace hetero::feed
