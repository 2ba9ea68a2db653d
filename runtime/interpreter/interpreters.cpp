#include "runtime/interpreter/interpreters.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/process_usage.h"
#include "base/status_macros.h"

namespace hetero::interpreter {
namespace {

using Outcome = Interpreter::Outcome;

// Calls of one interpreter from one look at its memory to the next, which takes microseconds.
constexpr int64_t kCallsPerLook = 16;
constexpr int64_t kFirstLook = 2;  // when it has what functions make at their first call
constexpr base::Duration kRoomPause = std::chrono::milliseconds(200);

// Of all interpreters that this thread has called.
thread_local base::Duration thread_cpu{};

std::string NameOf(const api::OperatorSpec& spec) {
  return absl::StrCat("Python operator ", spec.module, ".", spec.function);
}

bool IsSame(const api::OperatorSpec& a, const api::OperatorSpec& b) {
  return a.module == b.module && a.function == b.function && a.path == b.path &&
         a.outputs == b.outputs;
}

int64_t DefaultMemory() {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return base::CgroupMemoryLimit().value_or(machine) / 2;
}

}  // namespace

Interpreters::Interpreters(std::vector<api::OperatorSpec> pipeline, Options options,
                           base::Clock& clock)
    : pipeline_(std::move(pipeline)),
      options_(std::move(options)),
      memory_bytes_(options_.memory_bytes.value_or(DefaultMemory())),
      clock_(clock),
      owner_(getpid()) {
  for (const api::OperatorSpec& spec : pipeline_) {
    if (spec.op == api::OperatorKind::kPython) functions_.push_back(spec);
  }
  calls_ = std::vector<Calls>(functions_.size());
}

Interpreters::~Interpreters() = default;

absl::StatusOr<std::unique_ptr<Interpreters>> Interpreters::Start(
    const std::vector<api::OperatorSpec>& pipeline, Options options, base::Clock& clock,
    const std::stop_token& stop) {
  options.host.longest_call = 2 * options.patience;
  std::unique_ptr<Interpreters> made(new Interpreters(pipeline, std::move(options), clock));
  HETERO_ASSIGN_OR_RETURN(std::shared_ptr<InterpreterHost> host,
                          InterpreterHost::Start(pipeline, made->options_.host, clock,
                                                 [&stop] { return stop.stop_requested(); }));
  made->environment_ = host->environment();
  made->host_of_child_ = host.get();
  const base::MutexLock lock(made->host_mutex_);
  made->host_ = std::move(host);
  return made;
}

absl::StatusOr<int32_t> Interpreters::Find(const api::OperatorSpec& spec) const {
  for (size_t i = 0; i < functions_.size(); ++i) {
    if (IsSame(functions_[i], spec)) return static_cast<int32_t>(i);
  }
  return absl::InternalError(absl::StrCat(NameOf(spec), " was not imported"));
}

absl::Status Interpreters::Call(int32_t function, const job::StreamKey& key, bool training,
                                const pipeline::ImageView& in, pipeline::Image* out) const {
  const Request request{.function = static_cast<uint32_t>(function),
                        .training = training ? 1u : 0u,
                        .seed = key.seed,
                        .epoch = static_cast<uint64_t>(key.epoch),
                        .sample = static_cast<uint64_t>(key.sample_id),
                        .position = static_cast<uint64_t>(key.position),
                        .view = static_cast<uint64_t>(key.view)};
  const std::string name = NameOf(functions_[static_cast<size_t>(function)]);
  bool raised = false;
  for (int failures = 0;;) {
    absl::StatusOr<std::unique_ptr<Interpreter>> taken = Take(/*fresh=*/raised || failures > 0);
    if (absl::IsAborted(taken.status()) && ++failures < kTries) continue;
    if (absl::IsAborted(taken.status())) return absl::UnavailableError(taken.status().message());
    HETERO_RETURN_IF_ERROR(taken.status());
    std::unique_ptr<Interpreter> interpreter = *std::move(taken);
    const Interpreter::Answer answer =
        interpreter->Call(request, in, out, options_.patience, clock_, stopping_);
    cpu_ns_ += answer.cpu.count();
    thread_cpu += answer.cpu;
    switch (answer.outcome) {
      case Outcome::kDone: {
        const bool verified = IsVerified(request.function, interpreter->calls(request.function));
        GiveBack(std::move(interpreter));
        if (verified) Verify(request, in, *out);
        return absl::OkStatus();
      }
      case Outcome::kRaised:
        // Its state may have come from other pictures: only a fresh one shows that it is this one.
        Drop(std::move(interpreter));
        if (raised) return Raised(request.function, absl::StrCat(name, ": ", answer.text));
        raised = true;
        continue;
      case Outcome::kWrongResult:
        GiveBack(std::move(interpreter));
        return absl::InternalError(absl::StrCat(name, " ", answer.text));
      case Outcome::kStopped:
        Drop(std::move(interpreter));
        return absl::CancelledError("stopped");
      case Outcome::kRetry:
      case Outcome::kEnded:
      case Outcome::kHung:
        Drop(std::move(interpreter));
        if (++failures < kTries) continue;
        return absl::UnavailableError(
            absl::StrCat(name, ": ", answer.text, ", ", kTries, " times in a row"));
    }
  }
}

absl::Status Interpreters::Raised(uint32_t function, const std::string& text) const {
  const Calls& calls = calls_[function];
  if (++calls_[function].raised < kNoneOfFirst || calls.done > 0) return absl::DataLossError(text);
  return absl::InternalError(
      absl::StrCat(text, "; so it is for each of the first ", kNoneOfFirst, " pictures"));
}

void Interpreters::SetAlarm(std::function<void()> alarm) {
  const base::MutexLock lock(alarm_mutex_);
  alarm_ = std::move(alarm);
}

void Interpreters::Stop() {
  stopping_ = true;
  SetAlarm(nullptr);
}

base::Duration Interpreters::ThreadCpu() const { return thread_cpu; }

bool Interpreters::IsVerified(uint32_t function, int64_t calls) const {
  if (getpid() != owner_) return false;
  Calls& of = calls_[function];
  const bool one_of_many = ++of.done % kVerifiedOneOf == 0;
  if (!options_.verifies) return false;
  return one_of_many ||
         (calls >= kFirstVerified && !of.verified && of.inconclusive.load() < kTries);
}

void Interpreters::Verify(const Request& request, const pipeline::ImageView& in,
                          const pipeline::Image& made) const {
  {
    const base::MutexLock lock(mutex_);
    if (!HasRoom()) return;
    ++living_;
  }
  absl::StatusOr<std::unique_ptr<Interpreter>> other = Fork();
  pipeline::Image again;
  again.Reshape(made.shape);
  Interpreter::Answer answer{.outcome = Outcome::kEnded};
  if (other.ok()) {
    answer = (*other)->Call(request, in, &again, options_.patience, clock_, stopping_);
  }
  Drop(other.ok() ? *std::move(other) : nullptr, /*counts=*/false);
  std::string difference;
  const bool conclusive = answer.outcome == Outcome::kDone || answer.outcome == Outcome::kRaised ||
                          answer.outcome == Outcome::kWrongResult;
  if (conclusive) {
    calls_[request.function].verified = true;
  } else {
    ++calls_[request.function].inconclusive;
  }
  if (answer.outcome == Outcome::kDone && again.bytes != made.bytes) {
    difference = "made other pixels";
  } else if (conclusive && answer.outcome != Outcome::kDone) {
    difference = absl::StrCat("failed (", answer.text, ")");
  }
  if (difference.empty()) return;
  base::MutexLock lock(mutex_);
  if (!irreproducible_.empty()) return;
  irreproducible_ = absl::StrCat(
      NameOf(functions_[request.function]), " ", difference, " when it was called a second time ",
      "for sample ", request.sample, " of epoch ", request.epoch,
      ": it is no function of its arguments, but takes random numbers from elsewhere than rng, ",
      "or keeps something between calls");
  log::Warning("not reproducible", {{"because", irreproducible_}});
  lock.Unlock();
  const base::MutexLock alarm_lock(alarm_mutex_);
  if (alarm_) alarm_();
}

std::string Interpreters::irreproducible() const {
  const base::MutexLock lock(mutex_);
  return irreproducible_;
}

absl::StatusOr<std::unique_ptr<Interpreter>> Interpreters::Fork() const {
  if (getpid() != owner_) return host_of_child_.load()->Fork(clock_, stopping_);
  for (bool again = false;; again = true) {
    std::shared_ptr<InterpreterHost> host;
    {
      const base::MutexLock lock(host_mutex_);
      host = host_;
    }
    absl::StatusOr<std::unique_ptr<Interpreter>> made = host->Fork(clock_, stopping_);
    const bool host_is_lost =
        absl::IsUnavailable(made.status()) || absl::IsDeadlineExceeded(made.status());
    if (!host_is_lost) return made;
    if (again) return absl::UnavailableError(made.status().message());
    HETERO_RETURN_IF_ERROR(StartHostAgain(host, made.status()));
  }
}

absl::Status Interpreters::StartHostAgain(const std::shared_ptr<InterpreterHost>& ended,
                                          const absl::Status& why) const {
  const base::MutexLock lock(host_mutex_);
  if (host_ != ended) return absl::OkStatus();  // somebody else has
  log::Warning("Python is started again", {{"because", why.message()}});
  const auto stopping = [this] { return stopping_.load(); };
  absl::StatusOr<std::shared_ptr<InterpreterHost>> next =
      InterpreterHost::Start(pipeline_, options_.host, clock_, stopping);
  if (absl::IsCancelled(next.status())) return next.status();
  if (!next.ok()) return absl::UnavailableError(next.status().message());
  if ((*next)->environment() != environment_) {
    return absl::FailedPreconditionError(
        "Python, its packages or the modules of the Python operators have changed since this "
        "worker began, and with them the samples; start the job again");
  }
  host_of_child_ = next->get();
  host_ = *std::move(next);
  return absl::OkStatus();
}

bool Interpreters::HasRoom() const {
  if (living_ == 0) return true;
  if (private_bytes_ == 0) return false;  // the first one shows what one takes
  const bool room = private_bytes_ <= memory_bytes_ / (living_ + 1);
  if (!room && !told_of_room_) {
    told_of_room_ = true;
    log::Warning("fewer interpreters of Python than threads",
                 {{"interpreters", living_},
                  {"each MiB", private_bytes_ >> 20},
                  {"memory for all MiB", memory_bytes_ >> 20}});
  }
  return room;
}

absl::StatusOr<std::unique_ptr<Interpreter>> Interpreters::Take(bool fresh) const {
  if (getpid() != owner_) {
    if (!fresh && of_child_ != nullptr) return std::move(of_child_);
    return Fork();
  }
  {
    const base::MutexLock lock(mutex_);
    if (fresh) {
      if (!idle_.empty() && !HasRoom()) {  // makes room
        idle_.pop_back();
        --living_;
      }
    } else {
      while (idle_.empty() && !HasRoom()) {
        if (stopping_) return absl::CancelledError("stopped");
        given_back_.WaitUntil(mutex_, clock_.Now() + kRoomPause);
      }
      if (!idle_.empty()) {
        std::unique_ptr<Interpreter> taken = std::move(idle_.back());
        idle_.pop_back();
        return taken;
      }
    }
    ++living_;
  }
  absl::StatusOr<std::unique_ptr<Interpreter>> made = Fork();
  if (!made.ok()) {
    const base::MutexLock lock(mutex_);
    --living_;
    given_back_.NotifyOne();
  }
  return made;
}

bool Interpreters::MayStay(Interpreter& interpreter) const {
  const int64_t calls = interpreter.calls();
  if (calls != kFirstLook && calls % kCallsPerLook != 0) return true;
  const bool is_first = calls == kFirstLook;
  const int64_t bytes = is_first ? interpreter.PrivateBytes() : interpreter.GrownBytes();
  const base::MutexLock lock(mutex_);
  const int64_t share = memory_bytes_ / std::max<int64_t>(living_, 1);
  if (is_first) private_bytes_ = std::max({private_bytes_, bytes, int64_t{1}});
  // What one alone needs from its first calls on, another one would need too.
  if (bytes <= share || (is_first && living_ == 1)) return true;
  log::Warning("an interpreter of Python is replaced: it takes too much memory",
               {{"MiB", bytes >> 20}, {"its share MiB", share >> 20}, {"calls", calls}});
  return false;
}

void Interpreters::GiveBack(std::unique_ptr<Interpreter> interpreter) const {
  if (getpid() != owner_) {
    of_child_ = std::move(interpreter);
    return;
  }
  if (!MayStay(*interpreter)) {
    Drop(std::move(interpreter));
    return;
  }
  const base::MutexLock lock(mutex_);
  idle_.push_back(std::move(interpreter));
  given_back_.NotifyOne();
}

void Interpreters::Drop(std::unique_ptr<Interpreter> interpreter, bool counts) const {
  interpreter.reset();
  if (getpid() != owner_) return;
  const base::MutexLock lock(mutex_);
  --living_;
  if (counts) ++replaced_;
  given_back_.NotifyOne();
}

Interpreters::Counters Interpreters::counters() const {
  const base::MutexLock lock(mutex_);
  return {.interpreters = living_,
          .private_bytes = private_bytes_,
          .replaced = replaced_,
          .cpu_seconds = static_cast<double>(cpu_ns_.load()) * 1e-9};
}

}  // namespace hetero::interpreter
