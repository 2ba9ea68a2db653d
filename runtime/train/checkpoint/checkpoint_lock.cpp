#include "runtime/train/checkpoint/checkpoint_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/status_macros.h"
#include "base/thread.h"

namespace hetero::train {
namespace {

constexpr base::Duration kPatience = std::chrono::seconds(10);
// With one whose lock is held, but who does nothing: a killed process whose threads of idle
// priority have yet to end on a full machine.
constexpr base::Duration kPatienceWithSilent = std::chrono::seconds(30);
constexpr base::Duration kBeat = std::chrono::seconds(2);  // several within kPatience
constexpr base::Duration kPoll = std::chrono::milliseconds(200);

struct Holder {
  CheckpointLock::Owner owner;
  std::string text;  // the file as it was
};

// Absent when the file is empty: released, or never held.
absl::StatusOr<std::optional<Holder>> ReadHolder(const std::string& path) {
  HETERO_ASSIGN_OR_RETURN(std::string text, base::ReadFile(path));
  if (text.empty()) return std::nullopt;
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return Holder{.owner = ReadCheckpointOwner(json), .text = std::move(text)};
}

absl::Status Refusal(const std::string& folder, const std::optional<Holder>& holder) {
  const std::string who = Named(holder ? holder->owner : CheckpointOwner());
  return absl::FailedPreconditionError(
      absl::StrCat("the checkpoint folder ", folder, " is in use by ", who,
                   "; give this job another spec.training.checkpoint.uri, or wait for that one"));
}

}  // namespace

std::string ThisHost() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

absl::StatusOr<std::unique_ptr<CheckpointLock>> CheckpointLock::Take(const std::string& folder,
                                                                     const Owner& owner,
                                                                     base::Clock& clock,
                                                                     std::stop_token stop) {
  const std::string path = folder + "/.lock";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  const base::Instant began = clock.Now();
  std::optional<Holder> first;
  absl::Status status;
  while (status.ok()) {
    const bool exclusive = flock(file, LOCK_EX | LOCK_NB) == 0;
    const bool elsewhere = !exclusive && errno != EWOULDBLOCK;  // a file system without such locks
    absl::StatusOr<std::optional<Holder>> holder = ReadHolder(path);
    if (!holder.ok()) {
      status = holder.status();
      break;
    }
    const bool alive = *holder && first && first->text != (*holder)->text;
    if (exclusive || elsewhere) {
      const bool free = !*holder || (*holder)->owner.run == owner.run ||
                        (exclusive && (*holder)->owner.host == owner.host);
      if (free || (!alive && clock.Now() >= began + kPatience)) {
        return std::unique_ptr<CheckpointLock>(new CheckpointLock(file, owner, clock));
      }
    }
    if (!first) first = *holder;
    const bool silent = !exclusive && !elsewhere && !alive;
    if (clock.Now() >= began + (silent ? kPatienceWithSilent : kPatience)) {
      status = Refusal(folder, *holder);
    } else if (!clock.SleepFor(kPoll, stop)) {
      status = absl::CancelledError("stopped while waiting for the checkpoint folder");
    }
  }
  close(file);
  return status;
}

CheckpointLock::CheckpointLock(int file, const Owner& owner, base::Clock& clock)
    : file_(file), owner_(owner) {
  Write(0);
  beater_ = std::jthread([this, &clock](std::stop_token stop) {
    base::SetThreadName("ckpt-lock");
    for (int64_t beat = 1; clock.SleepFor(kBeat, stop); ++beat) Write(beat);
  });
}

CheckpointLock::~CheckpointLock() {
  beater_ = {};
  // A failure leaves a name in the file; the kernel's lock goes all the same.
  if (ftruncate(file_, 0) != 0) errno = 0;
  close(file_);
}

// Always of the same length once the counter has its digits, so that a reader never sees a mixture.
void CheckpointLock::Write(int64_t beat) {
  nlohmann::ordered_json json = ToJson(owner_);
  json["beat"] = 1'000'000'000 + beat;
  const std::string text = json.dump() + "\n";
  // What cannot be written now may be at the next beat; a full disk does not end training.
  if (pwrite(file_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
      ftruncate(file_, static_cast<off_t>(text.size())) != 0) {
    errno = 0;
  }
}

}  // namespace hetero::train
