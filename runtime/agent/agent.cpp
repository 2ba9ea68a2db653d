#include "runtime/agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "runtime/agent/process_tree.h"

namespace hetero::agent {
namespace {

bool Failed(const absl::Status& status) {
  return !status.ok() && !absl::IsCancelled(status) && !absl::IsAborted(status);
}

// What the ranks came to.
struct Results {
  base::Mutex mutex;
  absl::Status failure ABSL_GUARDED_BY(mutex);
  absl::Status last ABSL_GUARDED_BY(mutex);
};

}  // namespace

absl::Status RunAgent(const RankAgentOptions& options,
                      const std::vector<std::unique_ptr<ScriptProcess>>& scripts,
                      base::Clock& clock, std::stop_token stop) {
  // Of a keeper that was killed, what its script has started comes to this process.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::stop_source leave;
  const std::stop_callback on_stop(stop, [&leave] { leave.request_stop(); });
  Results results;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < options.ranks; ++rank) {
      threads.emplace_back([&, rank] {
        base::SetThreadName(absl::StrCat("rank-", rank));
        RankAgentOptions own = options;
        own.session.identity.member.set_local_rank(rank);
        if (rank > 0) own.session.metrics_address.clear();
        own.session.costs_told_by_another = rank > 0;
        ScriptProcess* const script =
            scripts.empty() ? nullptr : scripts[static_cast<size_t>(rank)].get();
        const absl::Status status = RunRankAgent(std::move(own), script, clock, leave.get_token());
        const base::MutexLock lock(results.mutex);
        results.last = status;
        if (!Failed(status)) return;
        if (results.failure.ok()) results.failure = status;
        leave.request_stop();
      });
    }
  }
  // Whoever is still there has been given up by its keeper, or has lost it.
  for (const auto& script : scripts) script->End(base::Duration::zero()).IgnoreError();
  const base::MutexLock lock(results.mutex);
  return results.failure.ok() ? results.last : results.failure;
}

absl::StatusOr<OwnSocketFolder> OwnSocketFolder::Create() {
  const char* parent = getenv("TMPDIR");
  std::string path =
      absl::StrCat(parent != nullptr && *parent != '\0' ? parent : "/tmp", "/hetero-agent-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot create a folder for sockets, ", path, ": ",
                                               strerror(errno),
                                               "; set TMPDIR to one that can be written to"));
  }
  return OwnSocketFolder(std::move(path));
}

OwnSocketFolder::OwnSocketFolder(OwnSocketFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")) {}

OwnSocketFolder::~OwnSocketFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace hetero::agent
