#include "runtime/train/program/local_ranks.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "api/process_environment.h"
#include "base/log.h"

namespace hetero::train {
namespace {

namespace environment = api::environment;
constexpr base::Duration kPollInterval = std::chrono::milliseconds(50);
constexpr base::Duration kLeaveGrace = std::chrono::seconds(10);

struct Rank {
  pid_t pid = -1;
  bool running = false;
};

std::vector<std::string> EnvironmentOf(int rank) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (absl::StartsWith(*entry, "CUDA_VISIBLE_DEVICES=") ||
        absl::StartsWith(*entry, absl::StrCat(environment::kLocalRank, "=")) ||
        absl::StartsWith(*entry, absl::StrCat(environment::kParentPid, "="))) {
      continue;
    }
    environment.emplace_back(*entry);
  }
  environment.push_back(absl::StrCat(environment::kLocalRank, "=", rank));
  environment.push_back(absl::StrCat(environment::kParentPid, "=", getpid()));
  environment.push_back(
      absl::StrCat("CUDA_VISIBLE_DEVICES=", VisibleGpu(visible != nullptr ? visible : "", rank)));
  return environment;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Children start with no signal blocked: this process waits for its own on a thread.
Rank Start(const LocalRankOptions& options, int rank) {
  std::vector<std::string> arguments = {options.program};
  const auto& own = options.arguments[static_cast<size_t>(rank)];
  arguments.insert(arguments.end(), own.begin(), own.end());
  std::vector<std::string> environment = EnvironmentOf(rank);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  Rank started;
  const int error = posix_spawn(&started.pid, options.program.c_str(), nullptr, &attributes,
                                Pointers(arguments).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  started.running = error == 0;
  if (error != 0) log::Error("cannot start a rank", {{"rank", rank}, {"error", strerror(error)}});
  return started;
}

int ExitCode(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void SignalAll(const std::vector<Rank>& ranks, int signal) {
  for (const Rank& rank : ranks) {
    if (rank.running) kill(rank.pid, signal);
  }
}

}  // namespace

std::string VisibleGpu(const std::string& visible, int index) {
  const std::vector<std::string> gpus = absl::StrSplit(visible, ',', absl::SkipEmpty());
  if (static_cast<size_t>(index) < gpus.size()) return gpus[static_cast<size_t>(index)];
  return absl::StrCat(index);
}

int RunLocalRanks(const LocalRankOptions& options, base::Clock& clock, std::stop_token stop) {
  std::vector<Rank> ranks;
  int verdict = 0;
  for (int i = 0; i < options.count; ++i) {
    ranks.push_back(Start(options, i));
    if (!ranks.back().running) verdict = 1;
  }
  bool leaving = false;
  base::Instant kill_at{};
  for (;;) {
    bool any = false;
    for (size_t i = 0; i < ranks.size(); ++i) {
      int status = 0;
      if (!ranks[i].running) continue;
      if (waitpid(ranks[i].pid, &status, WNOHANG) != ranks[i].pid) {
        any = true;
        continue;
      }
      ranks[i].running = false;
      if (ExitCode(status) == 0) continue;
      log::Warning("a rank ended", {{"localRank", i}, {"exitCode", ExitCode(status)}});
      if (verdict == 0) verdict = ExitCode(status);
    }
    if (!any) return verdict;
    if (!leaving && (verdict != 0 || stop.stop_requested())) {
      leaving = true;
      kill_at = clock.Now() + kLeaveGrace;
      SignalAll(ranks, SIGTERM);
    }
    // A requested stop has the time of the pod; only a failure hurries the others.
    if (leaving && verdict != 0 && !stop.stop_requested() && clock.Now() > kill_at) {
      SignalAll(ranks, SIGKILL);
    }
    clock.SleepFor(kPollInterval);
  }
}

}  // namespace hetero::train
