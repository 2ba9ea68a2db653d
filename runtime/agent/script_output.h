#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/recent_lines.h"

namespace hetero::agent {

// What the scripts of one rank print: read as it comes, passed on, and its end kept for the message
// of a failure; its lines are among log::LinesOfThisProcess(). However much it is, little of it is
// in memory. Thread-safe.
class ScriptOutput {
 public:
  struct Options {
    int source = -1;       // non-blocking; outlives this object
    int passed_to = -1;    // a descriptor that gets whole lines as far as there are; -1: none
    std::string prefix;    // of each line passed on: "[rank 3] "
    std::string log_file;  // empty: none
    int64_t log_limit = int64_t{64} << 20;  // bytes of the log file; then it says so and ends
  };
  // The error of a log file that cannot be written.
  static absl::StatusOr<std::unique_ptr<ScriptOutput>> Open(Options options);
  ~ScriptOutput();

  // A script begins: forgets what the one before it printed, whose log it goes on in.
  void Begin(int64_t generation);
  // The last 4 KiB since Begin(), from the beginning of a line where there is one. Reads what has
  // been printed until now first: after the end of all its processes, that is everything.
  std::string TakeTail();

 private:
  explicit ScriptOutput(Options options)
      : options_(std::move(options)), recent_(options_.prefix, log::LinesOfThisProcess()) {}
  void Run(const std::stop_token& stop);
  // Whether anything was there.
  bool ReadOnce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PassOn(bool all) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Log(const char* data, size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  int log_ = -1;
  base::Mutex mutex_;
  log::LineCutter recent_ ABSL_GUARDED_BY(mutex_);
  std::string tail_ ABSL_GUARDED_BY(mutex_);
  std::string line_ ABSL_GUARDED_BY(mutex_);  // not passed on yet
  bool begins_line_ ABSL_GUARDED_BY(mutex_) = true;
  int64_t logged_ ABSL_GUARDED_BY(mutex_) = 0;
  std::jthread reader_;
};

}  // namespace hetero::agent
