#include "operator/program/job_worker.h"

#include <functional>
#include <string>
#include <utility>

#include "operator/kube/event_recorder.h"
#include "operator/reconcile/head_follower.h"

namespace hetero::program {
namespace {

// Namespaces take turns, where there may be several.
std::function<std::string(const std::string& key)> GroupOf(const OperatorOptions& options) {
  if (options.watch_namespaces.size() == 1) return nullptr;
  return [](const std::string& key) { return kube::ObjectKey::Parse(key).name_space; };
}

}  // namespace

JobWorker::JobWorker(const OperatorOptions& options, kube::Client& client,
                     kube::Client& event_client, base::Clock& clock, metrics::Registry& registry)
    : options_(options),
      client_(client),
      event_client_(event_client),
      clock_(clock),
      registry_(registry),
      controller_(
          {.name = "heterotrainingjob", .workers = options.workers, .group_of = GroupOf(options)},
          clock, registry, [this](const std::string& key, std::stop_token stop) {
            return reconciler_->Reconcile(key, std::move(stop));
          }) {}

void JobWorker::Run(const reconcile::Stores& stores, const reconcile::OperatorIdentity& identity,
                    std::stop_token stop) {
  // The lease is released when this has returned: no call may outlast the stop.
  kube::Client until_stop = client_.Until(stop);
  kube::EventRecorder events(event_client_, clock_, {.instance = options_.identity});
  reconcile::HeadFollower heads(
      clock_, identity, [this](const std::string& key) { Enqueue(key); },
      registry_.GetGauge("hetero_head_streams", "Open status streams to the heads of jobs."));
  reconcile::Reconciler reconciler(
      until_stop, clock_, registry_, stores, events, heads, identity,
      {.settings = options_.settings, .parallelism = options_.parallelism});
  reconciler_ = &reconciler;
  SetHeads(&heads);
  controller_.Run(std::move(stop));
  SetHeads(nullptr);
}

void JobWorker::UseCertificate(const reconcile::OperatorIdentity& renewed) {
  const base::MutexLock lock(mutex_);
  if (heads_ != nullptr) heads_->UseCertificate(renewed.leaf);
}

void JobWorker::SetHeads(reconcile::HeadFollower* heads) {
  const base::MutexLock lock(mutex_);
  heads_ = heads;
}

}  // namespace hetero::program
