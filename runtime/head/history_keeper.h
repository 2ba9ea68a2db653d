#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/head/job_record.h"

namespace hetero::head {

// The history that a head gives out, kept up to date: anew when something happened that is worth
// remembering, and else every kInterval. Where a file is named it is written there too, by a thread
// of its own, since a disk may be slow; a failure is only logged.
class HistoryKeeper {
 public:
  static constexpr base::Duration kInterval = std::chrono::seconds(20);

  // An empty `file`: none.
  HistoryKeeper(std::string run, std::string file);
  ~HistoryKeeper();

  // The text as of now (history_codec.h). One thread at a time calls it.
  const std::string& Look(const JobRecord& record, Moment now);

 private:
  // What is worth remembering at once, as numbers that change with it.
  using Mark = std::tuple<size_t, int64_t, size_t, int64_t, int64_t, size_t, int64_t, size_t, bool,
                          size_t, size_t, std::string, std::string, bool>;
  static Mark MarkOf(const JobRecord& record);
  void WriteFiles(std::stop_token stop);

  const std::string run_;
  const std::string file_;
  std::string text_;
  std::optional<Mark> mark_;
  base::Instant made_{};

  base::Mutex mutex_;
  base::CondVar changed_;
  std::optional<std::string> unwritten_ ABSL_GUARDED_BY(mutex_);
  std::jthread writer_;
};

}  // namespace hetero::head
