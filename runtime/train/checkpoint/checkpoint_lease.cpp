#include "runtime/train/checkpoint/checkpoint_lease.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/atomic_file.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/thread.h"

namespace hetero::train {
namespace {

constexpr char kLockName[] = ".lock";
constexpr int64_t kMostLockBytes = 64 << 10;
constexpr base::Duration kLeaseBeat = std::chrono::seconds(5);
// With an owner that is seen to live: two beats.
constexpr base::Duration kLeasePatience = std::chrono::seconds(12);
// With a store whose reads and writes contradict each other.
constexpr base::Duration kMostWait = 3 * CheckpointLease::kLease;
constexpr base::Duration kLeasePoll = std::chrono::seconds(1);
// Before the end of a lease that could not be renewed, for the write that has begun.
constexpr base::Duration kMargin = std::chrono::seconds(10);

// Of this boot and its namespace of processes, in which numbers of processes mean something; empty:
// not known.
std::string ThisMachine() {
  const absl::StatusOr<std::string> boot = base::ReadFile("/proc/sys/kernel/random/boot_id");
  std::error_code error;
  const std::filesystem::path processes = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  if (!boot.ok() || error) return "";
  return absl::StrCat(absl::StripSuffix(*boot, "\n"), " ", processes.string());
}

std::string NewToken() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

struct LeaseHolder {
  storage::Object object;
  CheckpointOwner owner;
  std::string machine;
  std::string token;
  int64_t process = 0;
  bool released = false;
};

absl::StatusOr<std::optional<LeaseHolder>> ReadLeaseHolder(const storage::Store& store) {
  std::vector<uint8_t> bytes;
  absl::StatusOr<storage::Object> object = store.ReadAll(kLockName, kMostLockBytes, &bytes);
  if (absl::IsNotFound(object.status())) return std::nullopt;
  HETERO_RETURN_IF_ERROR(object.status());
  LeaseHolder holder{.object = *std::move(object)};
  const auto json = nlohmann::json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return holder;
  holder.owner = ReadCheckpointOwner(json);
  holder.machine = TextField(json, "machine");
  holder.token = TextField(json, "token");
  if (json.contains("pid") && json["pid"].is_number_integer()) holder.process = json["pid"];
  holder.released = json.contains("released");
  return holder;
}

bool IsDeadHere(const LeaseHolder& holder) {
  return !holder.machine.empty() && holder.machine == ThisMachine() && holder.process > 0 &&
         kill(static_cast<pid_t>(holder.process), 0) != 0 && errno == ESRCH;
}

// What may be the answer of a server to conditions that it does not know.
absl::Status WithRemedy(const absl::Status& status) {
  const bool strange =
      absl::IsInternal(status) || absl::IsUnimplemented(status) || absl::IsInvalidArgument(status);
  if (!strange) return status;
  return absl::Status(
      status.code(), absl::StrCat(status.message(),
                                  "; if the server knows no conditional writes, see to it yourself "
                                  "that no other job writes there, and set "
                                  "spec.training.checkpoint.lock: None"));
}

std::string NameOfHolder(const std::optional<LeaseHolder>& holder) {
  return Named(holder ? holder->owner : CheckpointOwner());
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointLease>> CheckpointLease::Take(
    std::unique_ptr<storage::WritableStore> store, const CheckpointOwner& owner, base::Clock& clock,
    std::stop_token stop) {
  std::unique_ptr<CheckpointLease> lease(new CheckpointLease(std::move(store), owner, clock));
  const std::string& uri = lease->store_->uri();
  const base::Instant began = clock.Now();
  base::Instant changed = began;  // when another version was seen first
  std::string version;
  bool alive = false;
  bool told = false;
  while (true) {
    HETERO_ASSIGN_OR_RETURN(const std::optional<LeaseHolder> holder,
                            ReadLeaseHolder(*lease->store_));
    const base::Instant now = clock.Now();
    if (holder && holder->object.version != version) {
      alive = !version.empty();
      version = holder->object.version;
      changed = now;
    }
    if (!holder || holder->released || holder->owner.run == owner.run || IsDeadHere(*holder) ||
        now - changed >= kLease) {
      const absl::Status taken = lease->Write(holder ? &holder->object : nullptr);
      if (taken.ok()) break;
      const bool another = absl::IsFailedPrecondition(taken) || absl::IsAlreadyExists(taken);
      if (!another) return WithRemedy(taken);
      if (now - began >= kMostWait) {
        return absl::DeadlineExceededError(
            absl::StrCat("the lock of the checkpoints could not be taken: ", taken.message()));
      }
    } else if (alive && now - began >= kLeasePatience) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the checkpoints in ", uri, " are in use by ", NameOfHolder(holder),
          "; give this job another spec.training.checkpoint.uri, or wait for that one"));
    }
    if (!std::exchange(told, true)) {
      log::Info("waits for the lock of the checkpoints",
                {{"in", uri}, {"of", NameOfHolder(holder)}});
    }
    if (!clock.SleepFor(kLeasePoll, stop)) {
      return absl::CancelledError("stopped while waiting for the lock of the checkpoints");
    }
  }
  HETERO_RETURN_IF_ERROR(lease->CheckConditions());
  lease->beater_ = std::jthread([&lease = *lease](std::stop_token stopped) {
    base::SetThreadName("ckpt-lease");
    while (lease.clock_.SleepFor(kLeaseBeat, stopped)) lease.Renew();
  });
  return lease;
}

CheckpointLease::CheckpointLease(std::unique_ptr<storage::WritableStore> store,
                                 CheckpointOwner owner, base::Clock& clock)
    : store_(std::move(store)), owner_(std::move(owner)), token_(NewToken()), clock_(clock) {}

CheckpointLease::~CheckpointLease() {
  beater_ = {};
  if (!held_) return;
  const std::string text = nlohmann::json{{"released", token_}}.dump() + "\n";
  // Who comes next waits for kLease where this fails.
  store_->WriteIfMatch(object_, text).IgnoreError();
}

absl::Status CheckpointLease::Write(const storage::Object* old) {
  const base::Instant begin = clock_.Now();
  const std::string text = Text(beat_++);
  absl::StatusOr<storage::Object> written =
      old != nullptr ? store_->WriteIfMatch(*old, text) : store_->WriteIfAbsent(kLockName, text);
  HETERO_RETURN_IF_ERROR(written.status());
  object_ = *std::move(written);
  held_ = true;
  const base::MutexLock lock(mutex_);
  written_ = begin;
  return absl::OkStatus();
}

// A server that does not know the conditions writes all the same, and then the lock is none.
absl::Status CheckpointLease::CheckConditions() {
  const std::string text = nlohmann::json{{"probe", token_}}.dump() + "\n";
  storage::Object stale = object_;
  stale.version = "00000000000000000000000000000000";
  for (const bool absent : {true, false}) {
    const absl::StatusOr<storage::Object> written =
        absent ? store_->WriteIfAbsent(kLockName, text) : store_->WriteIfMatch(stale, text);
    if (absl::IsAlreadyExists(written.status()) || absl::IsFailedPrecondition(written.status())) {
      continue;
    }
    if (!written.ok()) return WithRemedy(written.status());
    held_ = false;  // whoever holds it: this server cannot tell
    store_->Delete(kLockName).IgnoreError();
    return absl::FailedPreconditionError(absl::StrCat(
        store_->uri(), ": the server writes in spite of ", absent ? "If-None-Match" : "If-Match",
        ", so no job can be kept from the checkpoints of another; use a server that knows such "
        "conditions, or see to it yourself and set spec.training.checkpoint.lock: None"));
  }
  return absl::OkStatus();
}

void CheckpointLease::Renew() {
  {
    const base::MutexLock lock(mutex_);
    if (!lost_.ok()) return;
  }
  absl::Status renewed = Write(&object_);
  if (!absl::IsFailedPrecondition(renewed)) return;  // what failed may succeed at the next beat
  absl::StatusOr<std::optional<LeaseHolder>> holder = ReadLeaseHolder(*store_);
  if (!holder.ok()) return;
  if (!*holder) {  // somebody removed it, and nobody has it
    renewed = Write(nullptr);
    if (!absl::IsAlreadyExists(renewed)) return;
    holder = ReadLeaseHolder(*store_);
    if (!holder.ok()) return;
  }
  if (*holder && (*holder)->token == token_) {  // an earlier write whose reply got lost
    object_ = (*holder)->object;
    renewed = Write(&object_);
    if (!absl::IsFailedPrecondition(renewed)) return;
    holder = ReadLeaseHolder(*store_);
  }
  held_ = false;
  const base::MutexLock lock(mutex_);
  lost_ = absl::AbortedError(absl::StrCat(
      store_->uri(), "/", kLockName, ": ", NameOfHolder(holder.ok() ? *holder : std::nullopt),
      " has taken the checkpoints over; this job writes none any more"));
}

absl::Status CheckpointLease::Check() const {
  const base::MutexLock lock(mutex_);
  if (!lost_.ok()) return lost_;
  const base::Duration silent = clock_.Now() - written_;
  if (silent < kLease - kMargin) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      store_->uri(), "/", kLockName, ": could not be written for ",
      static_cast<int64_t>(base::ToSeconds(silent)), " s, so another job may have it by now"));
}

std::string CheckpointLease::Text(int64_t beat) const {
  nlohmann::ordered_json json = ToJson(owner_);
  json["machine"] = ThisMachine();
  json["pid"] = getpid();
  json["token"] = token_;
  json["beat"] = beat;
  return json.dump() + "\n";
}

}  // namespace hetero::train
