#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace hetero::log {

struct RecentLine {
  base::WallTime time;
  std::string text;  // UTF-8, at most RecentLines::kLongest bytes
};

// The newest lines that this process, or what it started, has printed, until somebody takes them
// to show them elsewhere. Little is kept, however much is printed. Thread-safe.
class RecentLines {
 public:
  static constexpr size_t kMost = 200;     // lines
  static constexpr size_t kLongest = 500;  // bytes of one

  // `line` without its end. What moves a terminal's cursor or colours it is left out, of a line
  // that was drawn several times its last state is kept, and bytes that are not UTF-8 become
  // U+FFFD. An empty one is none.
  void Add(std::string_view line);
  // The newest, at most `lines` of `bytes` in all, in their order; all others are forgotten. When
  // there were such, the first line says how many.
  std::vector<RecentLine> Take(size_t lines, size_t bytes);

 private:
  base::Mutex mutex_;
  std::deque<RecentLine> lines_ ABSL_GUARDED_BY(mutex_);
  size_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last Take()
};

// What log.h writes is among them by itself.
RecentLines& LinesOfThisProcess();

// Bytes that come in pieces, cut into lines. Not thread-safe.
class LineCutter {
 public:
  LineCutter(std::string prefix, RecentLines& to) : prefix_(std::move(prefix)), to_(to) {}
  void Add(std::string_view bytes);

 private:
  const std::string prefix_;  // of each line
  RecentLines& to_;
  std::string line_;  // that has not ended
};

}  // namespace hetero::log
