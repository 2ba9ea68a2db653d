#pragma once

#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cli/member_table.h"
#include "cli/options.h"
#include "cli/port_forward.h"
#include "operator/kube/client.h"

// What the pods of a job do right now, asked with the user's own rights: metrics.k8s.io for CPU and
// memory; the head's page for what each process has done so far, of which two looks make a rate.
// The page comes through the API server's proxy to pods or, where that may not be used or does not
// get through, by `kubectl port-forward`.
namespace hetero::cli {

// Of one pod, as the head's report has it: counters only grow.
struct PodCounters {
  int64_t samples = 0;
  double cpu_seconds = 0;
  double peak_bytes = 0;
  int64_t restarts = 0;
  std::optional<double> wait_percent;  // of a GPU worker's ranks the one that waits most
};
// Those of report.json by member ("cpu-0"), the ranks of a pod together. Pure.
std::map<std::string, PodCounters> CountersOf(const nlohmann::json& report);

// "250m", "1.5", "12345Ki"; nothing for what is no quantity of Kubernetes. Pure.
std::optional<double> ParseQuantity(std::string_view text);

// Thread-safe: one thread looks while another one reads.
class LiveFigures {
 public:
  // They outlive it. `options` for kubectl, `selector` of the pods of `job`.
  LiveFigures(kube::Client& client, base::Clock& clock, const Options& options,
              std::string name_space, std::string job, std::string selector)
      : client_(client),
        clock_(clock),
        options_(options),
        name_space_(std::move(name_space)),
        job_(std::move(job)),
        selector_(std::move(selector)) {}

  // Asks once. The second look and later ones give rates, those of the last ten seconds.
  void Look(const std::vector<Member>& members, const std::stop_token& stop);
  // Adds what is known; `missing` says why the rest is not.
  void FillIn(TopView& view) const;

 private:
  struct Moment {
    base::Instant at;
    std::map<std::string, PodCounters> counters;
  };
  struct Usage {
    double cores = 0;
    double bytes = 0;
  };

  std::map<std::string, Usage> AskUsage(const std::stop_token& stop);
  // The report so far, of the head in `pod`; sets `missing_` when it cannot be had.
  absl::StatusOr<nlohmann::json> AskHead(const std::string& pod, const std::stop_token& stop);
  absl::StatusOr<nlohmann::json> AskByForward(const std::string& pod, const std::stop_token& stop);
  absl::Status NotForwarded(const absl::Status& status);
  // kUnavailable: it is none of this job.
  absl::StatusOr<nlohmann::json> ReportIn(const absl::StatusOr<std::string>& page) const;

  kube::Client& client_;
  base::Clock& clock_;
  const Options& options_;
  const std::string name_space_;
  const std::string job_;
  const std::string selector_;
  // Of the thread that looks.
  std::unique_ptr<PortForward> forward_;  // since the proxy failed
  std::string forwarded_pod_;
  absl::Status forward_problem_;  // the last
  base::Instant forward_from_{};  // not tried again before
  base::Duration forward_pause_{};
  mutable base::Mutex mutex_;
  std::map<std::string, Usage> usage_ ABSL_GUARDED_BY(mutex_);  // by pod
  std::deque<Moment> moments_ ABSL_GUARDED_BY(mutex_);          // the oldest first
  std::string verdict_ ABSL_GUARDED_BY(mutex_);
  std::string missing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::cli
