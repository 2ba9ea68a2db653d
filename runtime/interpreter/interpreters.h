#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/interpreter/interpreter_host.h"
#include "runtime/pipeline/python_functions.h"

namespace hetero::interpreter {

// The Python functions of one job's pipeline, in as many processes as threads call them at once, or
// as the container's memory has room for. Safe from any thread, and in a child of fork(), which
// gets an interpreter of its own. What a function does to its process (it ends, hangs, grows) costs
// that process alone; the picture is tried again in another one.
class Interpreters : public pipeline::PythonFunctions {
 public:
  static constexpr int kTries = 3;  // of one picture whose interpreters end or hang
  // A function that raises an exception for each of the first so many pictures does so for all.
  static constexpr int64_t kNoneOfFirst = 20;
  struct Options {
    HostOptions host;
    // With one call; less than a trainer's with a worker that says nothing.
    base::Duration patience = std::chrono::seconds(25);
    // Of all interpreters together; half of the container's or the machine's, if absent. An
    // interpreter may take its share, and is replaced when it takes more.
    std::optional<int64_t> memory_bytes;
    // Whether some pictures are made a second time, in an interpreter that has made no other.
    bool verifies = true;
  };
  // Of each function's calls, those that are made a second time: the first one of an interpreter
  // that has called it so often (what is kept between calls is soon found), and one of each
  // thousand.
  static constexpr int64_t kFirstVerified = 10;
  static constexpr int64_t kVerifiedOneOf = 1000;

  // Errors as InterpreterHost::Start(); kCancelled: stop was requested.
  static absl::StatusOr<std::unique_ptr<Interpreters>> Start(
      const std::vector<api::OperatorSpec>& pipeline, Options options,
      base::Clock& clock = base::Clock::Real(), const std::stop_token& stop = {});
  ~Interpreters() override;

  absl::StatusOr<int32_t> Find(const api::OperatorSpec& spec) const override;
  absl::Status Call(int32_t function, const job::StreamKey& key, bool training,
                    const pipeline::ImageView& in, pipeline::Image* out) const override;
  base::Duration ThreadCpu() const override;
  // Calls end with kCancelled, those that wait for a function too; there is no alarm any more.
  void Stop();

  // As InterpreterHost has it.
  const std::map<std::string, std::string>& environment() const { return environment_; }

  struct Counters {
    int64_t interpreters = 0;   // now
    int64_t private_bytes = 0;  // of the largest that was looked at
    int64_t replaced = 0;       // because they ended, hung, grew or raised an exception
    double cpu_seconds = 0;     // of all calls
  };
  Counters counters() const;
  // Called once, when irreproducible() begins to say something. Before the first Call().
  void SetAlarm(std::function<void()> alarm);
  // Which function made something else the second time, and of which sample; empty: none so far.
  std::string irreproducible() const;

 private:
  Interpreters(std::vector<api::OperatorSpec> pipeline, Options options, base::Clock& clock);

  // Whether a function's call is one that is made a second time, after `calls` of it in this
  // interpreter.
  bool IsVerified(uint32_t function, int64_t calls) const;
  // Calls it again, in another interpreter, and compares with `made`.
  void Verify(const Request& request, const pipeline::ImageView& in,
              const pipeline::Image& made) const;
  absl::StatusOr<std::unique_ptr<Interpreter>> Take(bool fresh) const;
  absl::StatusOr<std::unique_ptr<Interpreter>> Fork() const;
  absl::Status StartHostAgain(const std::shared_ptr<InterpreterHost>& ended,
                              const absl::Status& why) const;
  void GiveBack(std::unique_ptr<Interpreter> interpreter) const;
  void Drop(std::unique_ptr<Interpreter> interpreter, bool counts = true) const;
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether it may stay; looks now and then.
  bool MayStay(Interpreter& interpreter) const;
  // What comes of a picture for which a function has raised an exception twice.
  absl::Status Raised(uint32_t function, const std::string& text) const;

  const std::vector<api::OperatorSpec> pipeline_;
  const Options options_;
  const int64_t memory_bytes_;
  base::Clock& clock_;
  const pid_t owner_;
  std::vector<api::OperatorSpec> functions_;
  std::map<std::string, std::string> environment_;
  std::atomic<bool> stopping_ = false;
  mutable std::atomic<int64_t> cpu_ns_ = 0;
  struct Calls {
    std::atomic<int64_t> done = 0;
    std::atomic<int64_t> raised = 0;  // for a picture, and again
    std::atomic<bool> verified = false;
    std::atomic<int> inconclusive = 0;  // second calls before, whose interpreters ended or hung
  };
  mutable std::vector<Calls> calls_;  // of each function

  mutable base::Mutex host_mutex_;  // held while another host starts
  mutable std::shared_ptr<InterpreterHost> host_ ABSL_GUARDED_BY(host_mutex_);
  // The same, for children of fork(), which take no lock.
  mutable std::atomic<InterpreterHost*> host_of_child_ = nullptr;
  mutable std::unique_ptr<Interpreter> of_child_;  // in a child of fork() only

  mutable base::Mutex alarm_mutex_;  // held while it is given
  std::function<void()> alarm_ ABSL_GUARDED_BY(alarm_mutex_);

  mutable base::Mutex mutex_;
  mutable base::CondVar given_back_;
  mutable std::vector<std::unique_ptr<Interpreter>> idle_ ABSL_GUARDED_BY(mutex_);
  mutable int64_t living_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable int64_t private_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable int64_t replaced_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable std::string irreproducible_ ABSL_GUARDED_BY(mutex_);
  mutable bool told_of_room_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hetero::interpreter
