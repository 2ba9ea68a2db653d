#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/job_view.h"
#include "operator/kube/client.h"

// Where jobs stand among those that wait in the same LocalQueue, as Kueue's visibility API tells it
// (visibility.kueue.x-k8s.io, subresource pendingworkloads).
namespace hetero::cli {

// "3rd of 7 in team" out of a PendingWorkloadsSummary of the job's queue; empty: the job is not in
// it. Workloads of other namespaces, whose queues may have the same name, do not count. Pure.
std::string PlaceIn(const nlohmann::json& summary, const JobView& view);

// Asks for the summaries, with the rights of the client's user. Not thread-safe.
class QueuePlaces {
 public:
  // They outlive it.
  QueuePlaces(kube::Client& client, base::Clock& clock) : client_(client), clock_(clock) {}

  // Sets `place` of each job that is queued; one call for each queue. It stays empty where the API
  // is not served, is not the user's to ask, or gives no answer: it is then left alone for a while,
  // for one queue where the answer is about that.
  void Find(std::vector<JobView*> views, std::stop_token stop = {});

 private:
  nlohmann::json Ask(const std::string& name_space, const std::string& queue,
                     const std::stop_token& stop);

  kube::Client& client_;
  base::Clock& clock_;
  base::Instant quiet_until_{};
  std::map<std::pair<std::string, std::string>, base::Instant> quiet_queues_;  // until when
};

}  // namespace hetero::cli
