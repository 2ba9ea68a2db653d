#include <algorithm>
#include <functional>
#include <iostream>
#include <list>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "cli/commands.h"
#include "cli/job_view.h"
#include "cli/pod_logs.h"
#include "cli/terminal.h"

namespace hetero::cli {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kPeriod{2};

std::string NoPods(const Cluster& cluster, const Options& options) {
  return absl::StrCat("heterotrainingjob ", cluster.name_space(), "/", options.job, " has no ",
                      options.role.empty() && options.index < 0 ? "pods" : "such pods",
                      " now; kubectl hetero status ", options.job,
                      " says why (they go with the job's end unless runPolicy.cleanPodPolicy is "
                      "None)");
}

// Lines of many pods on standard output, whole. Thread-safe.
class Printer {
 public:
  void SetWidth(size_t width) {
    const base::MutexLock lock(mutex_);
    width_ = std::max(width_, width);
  }
  void Line(const LogPod& pod, std::string_view line) {
    const base::MutexLock lock(mutex_);
    gone_ |= !Print(Prefix(pod) + std::string(line) + "\n");
  }
  void Error(const LogPod& pod, const absl::Status& status) {
    const base::MutexLock lock(mutex_);
    std::cerr << Prefix(pod) << "error: " << status.message() << "\n";
    failed_ = true;
  }
  void Note(const LogPod& pod, std::string_view text) {
    const base::MutexLock lock(mutex_);
    std::cerr << Prefix(pod) << text << "\n";
  }
  bool gone() const {
    const base::MutexLock lock(mutex_);
    return gone_;
  }
  int exit_code() const {
    const base::MutexLock lock(mutex_);
    return gone_ ? kExitOutputGone : failed_ ? kExitFailed : 0;
  }

 private:
  std::string Prefix(const LogPod& pod) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return pod.member + std::string(width_ - std::min(width_, pod.member.size()), ' ') + " | ";
  }
  mutable base::Mutex mutex_;  // guards the output too
  size_t width_ ABSL_GUARDED_BY(mutex_) = 0;
  bool gone_ ABSL_GUARDED_BY(mutex_) = false;  // nobody reads it any more
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
};

// Follows the pods there are and those that take their place, each on a thread of its own.
class Follower {
 public:
  Follower(Cluster& cluster, const Options& options, base::Clock& clock, std::stop_token stop)
      : cluster_(cluster),
        options_(options),
        clock_(clock),
        forward_(stop, [this] { stop_.request_stop(); }) {}
  ~Follower() { stop_.request_stop(); }

  // Until the job has ended and all has been read.
  absl::StatusOr<int> Run(json job);

 private:
  void Start(const LogPod& pod);
  void Read(const LogPod& pod);
  bool Idle() {
    const base::MutexLock lock(mutex_);
    return active_.empty();
  }

  Cluster& cluster_;
  const Options& options_;
  base::Clock& clock_;
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> forward_;
  Printer printer_;
  std::set<std::string> known_;  // uids that were started
  base::Mutex mutex_;
  std::set<std::string> active_ ABSL_GUARDED_BY(mutex_);  // names that are being read
  std::list<std::jthread> threads_;                       // joined first
};

absl::StatusOr<int> Follower::Run(json job) {
  bool told = false;
  while (true) {
    const auto view = ViewOf(job);
    if (!view.ok()) return view.status();
    const auto pods = FindPods(cluster_, options_, job);
    if (!pods.ok()) return pods.status();
    for (const LogPod& pod : *pods) printer_.SetWidth(pod.member.size());
    for (const LogPod& pod : *pods) Start(pod);
    const bool over = view->status.finished() && Idle();
    if (over && known_.empty()) return absl::NotFoundError(NoPods(cluster_, options_));
    if (over) return printer_.exit_code();
    if (known_.empty() && !told) {
      std::cerr << "No pods yet; waiting for them\n";
      told = true;
    }
    if (!clock_.SleepFor(kPeriod, stop_.get_token())) return kExitInterrupted;
    if (printer_.gone()) return kExitOutputGone;
    auto again = cluster_.Job(options_.job);
    if (absl::IsNotFound(again.status())) return printer_.exit_code();
    if (again.ok()) job = *std::move(again);
  }
}

void Follower::Start(const LogPod& pod) {
  {
    const base::MutexLock lock(mutex_);
    if (known_.contains(pod.uid) || !active_.insert(pod.name).second) return;
  }
  known_.insert(pod.uid);
  threads_.emplace_back([this, pod] {
    base::SetThreadName("log-" + pod.member);
    Read(pod);
    const base::MutexLock lock(mutex_);
    active_.erase(pod.name);
  });
}

void Follower::Read(const LogPod& pod) {
  const std::stop_token stop = stop_.get_token();
  std::string waits;
  while (!stop.stop_requested()) {
    const absl::Status ended = ReadLog(
        cluster_, pod, true, [&](std::string_view line) { printer_.Line(pod, line); }, stop);
    // Gone before it wrote anything, as at the end of a job.
    if (ended.ok() || absl::IsNotFound(ended) || stop.stop_requested()) return;
    if (!absl::IsInvalidArgument(ended)) return printer_.Error(pod, ended);
    if (waits != ended.message()) {
      waits = std::string(ended.message());
      printer_.Note(pod, waits);
    }
    clock_.SleepFor(kPeriod, stop);
  }
}

}  // namespace

absl::StatusOr<int> Logs(Cluster& cluster, const Options& options, base::Clock& clock,
                         std::stop_token stop) {
  auto job = cluster.Job(options.job);
  if (!job.ok()) return job.status();
  if (options.follow) return Follower(cluster, options, clock, stop).Run(*std::move(job));
  const auto pods = FindPods(cluster, options, *job);
  if (!pods.ok()) return pods.status();
  if (pods->empty()) return absl::NotFoundError(NoPods(cluster, options));
  Printer printer;
  for (const LogPod& pod : *pods) printer.SetWidth(pod.member.size());
  for (const LogPod& pod : *pods) {
    const absl::Status ended = ReadLog(
        cluster, pod, false, [&](std::string_view line) { printer.Line(pod, line); }, stop);
    if (stop.stop_requested()) return kExitInterrupted;
    if (printer.gone()) return kExitOutputGone;
    if (!ended.ok()) printer.Error(pod, ended);
  }
  return printer.exit_code();
}

}  // namespace hetero::cli
