#include "operator/reconcile/reconciler.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/job_resource.h"
#include "api/labels.h"
#include "base/log.h"
#include "base/mutex.h"
#include "operator/children/names.h"
#include "operator/plan/accounting.h"
#include "operator/plan/make_plan.h"
#include "operator/reconcile/job_log.h"
#include "operator/reconcile/job_memory.h"
#include "operator/reconcile/job_metrics.h"
#include "operator/reconcile/job_resource.h"
#include "operator/reconcile/json_access.h"
#include "operator/reconcile/ownership.h"
#include "operator/reconcile/plan_executor.h"
#include "operator/reconcile/progress_throttle.h"

namespace hetero::reconcile {

namespace {

using Result = controller::Controller::Result;
using nlohmann::json;

template <typename T>
std::shared_ptr<const T> Named(const std::vector<std::shared_ptr<const T>>& values,
                               const std::string& name) {
  const auto it = std::find_if(values.begin(), values.end(),
                               [&name](const auto& value) { return value->name == name; });
  return it == values.end() ? nullptr : *it;
}

// The status subresource takes nothing else from the body, so spec is left out.
json StatusUpdate(const plan::ObservedJob& job, const api::JobStatus& status) {
  const api::Metadata& metadata = job.job.metadata;
  return {{"apiVersion", api::kApiVersion},
          {"kind", api::kKind},
          {"metadata",
           {{"name", metadata.name},
            {"namespace", metadata.name_space},
            {"uid", metadata.uid},
            {"resourceVersion", job.resource_version}}},
          {"status", json::parse(api::StatusToJson(status), nullptr, false)}};
}

}  // namespace

struct Reconciler::Impl {
  Impl(kube::Client& client, base::Clock& clock, metrics::Registry& registry, Stores stores,
       kube::EventRecorder& events, Heads& heads, const OperatorIdentity& identity, Options options)
      : client(client),
        clock(clock),
        stores(stores),
        events(events),
        heads(heads),
        options(std::move(options)),
        metrics(registry),
        throttle(this->options.progress_writes_per_second),
        executor(client, clock, *stores.jobs, heads, identity, this->options.settings,
                 this->options.parallelism) {}

  absl::StatusOr<Result> Reconcile(const std::string& key, std::stop_token stop);
  JobMemory& MemoryOf(const std::string& key, const std::string& uid);
  void Forget(const std::string& key);
  plan::Observed Observe(const std::string& key, std::shared_ptr<const plan::ObservedJob> job,
                         JobMemory& memory);
  void ObserveQueues(const std::string& own, plan::Observed& observed) const;
  void ObserveGang(const std::string& own, plan::Observed& observed) const;
  void ObserveLives(const std::string& own, plan::Observed& observed, JobMemory& memory) const;
  std::optional<base::Duration> ProgressWait(JobMemory& memory) const;
  absl::Status WriteStatus(const std::string& key, const plan::Observed& observed,
                           const api::JobStatus& status, JobMemory& memory);
  void TellOfOldDefinition(const std::string& dropped);
  void SendEvents(const api::Metadata& job, const std::vector<plan::Event>& planned);
  kube::Client& client;
  base::Clock& clock;
  const Stores stores;
  kube::EventRecorder& events;
  Heads& heads;
  const Options options;
  JobMetrics metrics;
  mutable ProgressThrottle throttle;
  PlanExecutor executor;
  std::atomic<bool> old_definition_told = false;
  base::Mutex mutex;
  // An entry belongs to the pass over its key.
  std::map<std::string, std::unique_ptr<JobMemory>> memories ABSL_GUARDED_BY(mutex);
};

JobMemory& Reconciler::Impl::MemoryOf(const std::string& key, const std::string& uid) {
  const base::MutexLock lock(mutex);
  std::unique_ptr<JobMemory>& memory = memories[key];
  if (memory == nullptr || memory->uid != uid) {
    heads.Follow(key, std::nullopt);  // another job of that name
    const std::string state = memory == nullptr ? "" : memory->state;
    memory = std::make_unique<JobMemory>();
    memory->uid = uid;
    memory->state = state;
  }
  return *memory;
}

void Reconciler::Impl::Forget(const std::string& key) {
  heads.Follow(key, std::nullopt);
  const base::MutexLock lock(mutex);
  const auto it = memories.find(key);
  if (it == memories.end()) return;
  metrics.Moved(it->second->state, "");
  memories.erase(it);
  log::Info("job gone", {{"job", key}});
}

plan::Observed Reconciler::Impl::Observe(const std::string& key,
                                         std::shared_ptr<const plan::ObservedJob> job,
                                         JobMemory& memory) {
  plan::Observed observed;
  observed.job = std::move(job);
  const api::Metadata& metadata = observed.job->job.metadata;
  const std::string own = OwnerKey(metadata.name_space, metadata.uid);
  observed.pods = stores.pods->In(own);
  observed.service = Named(stores.services->In(own), children::ServiceName(metadata));
  observed.config_map = Named(stores.config_maps->In(own), children::ConfigMapName(metadata));
  observed.network_policy =
      Named(stores.network_policies->In(own), children::NetworkPolicyName(metadata));
  ObserveQueues(own, observed);
  ObserveGang(own, observed);
  memory.expectations.Overlay(observed, clock.Now(), clock.WallNow());
  for (const auto& pod : observed.pods) {
    if (stores.nodes == nullptr || pod->node.empty()) continue;
    if (const auto node = stores.nodes->Get({"", pod->node})) observed.nodes[pod->node] = *node;
  }
  const std::optional<api::PodPlacement>& placement = observed.job->job.spec.placement;
  if (stores.nodes != nullptr && placement && placement->zone == api::ZoneChoice::kSame) {
    observed.zones = stores.nodes->Has(kNodesInZones);
  }
  observed.head = heads.Report(key);
  observed.create_error = memory.create_error;
  observed.settled = memory.settled.uids();
  observed.backoff = memory.backoff;
  ObserveLives(own, observed, memory);
  return observed;
}

// Also those pods that are as good as gone: they cost money until they are.
void Reconciler::Impl::ObserveLives(const std::string& own, plan::Observed& observed,
                                    JobMemory& memory) const {
  std::vector<plan::RemovedPod> removed;
  if (stores.departures != nullptr) removed = stores.departures->Take(own);
  if (!plan::KeepsAccount(*observed.job, options.settings)) return;
  auto pods = observed.pods;
  std::set<std::string> shown;
  for (const auto& pod : pods) shown.insert(pod->uid);
  for (const auto& pod : stores.pods->In(own)) {
    if (!shown.contains(pod->uid)) pods.push_back(pod);
  }
  observed.lives = memory.lives.See(observed.job->job.spec, observed.job->status.cost, pods,
                                    removed, observed.nodes, clock.WallNow());
}

void Reconciler::Impl::ObserveQueues(const std::string& own, plan::Observed& observed) const {
  using Support = plan::ObservedQueues::Support;
  if (stores.workloads == nullptr) return;
  plan::ObservedQueues& queues = observed.queues;
  queues.support = stores.queues_served(observed.job->job.metadata.name_space) ? Support::kServed
                                                                               : Support::kMissing;
  observed.workloads = stores.workloads->In(own);
  for (const auto& workload : observed.workloads) {
    for (const plan::PodSetAssignment& assignment : workload->assignments) {
      for (const std::string& name : assignment.flavors) {
        if (const auto flavor = stores.flavors->Get({"", name})) queues.flavors[name] = *flavor;
      }
    }
  }
  const api::HeteroTrainingJob& job = observed.job->job;
  const auto labelled = job.metadata.labels.find(api::kQueuePriorityLabel);
  const std::string own_class = labelled == job.metadata.labels.end() ? "" : labelled->second;
  const std::string elastic_class =
      job.spec.scheduling ? job.spec.scheduling->elastic_priority_class : "";
  for (const std::string& name : {own_class, elastic_class}) {
    const auto priority = name.empty() ? nullptr : stores.priorities->Get({"", name});
    if (priority != nullptr) queues.priorities[name] = *priority;
  }
}

void Reconciler::Impl::ObserveGang(const std::string& own, plan::Observed& observed) const {
  const api::HeteroTrainingJob& job = observed.job->job;
  std::set<children::GangApi> replaced;  // by an API of another version: the cluster was upgraded
  if (job.spec.scheduling) {
    for (const children::GangApi gang_api : children::GangApisOf(job.spec.scheduling->gang)) {
      if (!stores.pod_groups.contains(gang_api)) continue;
      observed.gang.enabled = true;
      if (!stores.gang_served(gang_api, job.metadata.name_space)) {
        replaced.insert(gang_api);
      } else if (!observed.gang.served) {
        observed.gang.served = gang_api;
      }
    }
  }
  if (!observed.gang.served) replaced.clear();
  for (const auto& [gang_api, store] : stores.pod_groups) {
    if (replaced.contains(gang_api)) continue;
    for (const auto& group : store->In(own)) observed.pod_groups.push_back(group);
  }
}

absl::StatusOr<Result> Reconciler::Impl::Reconcile(const std::string& key, std::stop_token stop) {
  const auto stored = stores.jobs->Get(kube::ObjectKey::Parse(key));
  if (stored == nullptr) {
    Forget(key);
    return Result{};
  }
  JobMemory& memory = MemoryOf(key, stored->job.metadata.uid);
  const base::Instant now = clock.Now();
  if (memory.deleted_until && now < *memory.deleted_until && !stored->deleting) {
    return Result{*memory.deleted_until - now};
  }
  const auto job = memory.manager.Complete(memory.dropped.Complete(memory.writes.Newest(stored)));
  if (const base::Duration wait = memory.conflicts.Wait(job->resource_version, now);
      wait > base::Duration::zero()) {
    return Result{wait};
  }
  const plan::Observed observed = Observe(key, job, memory);
  const plan::Plan plan = plan::MakePlan(observed, options.settings, clock.WallNow());
  heads.Follow(key, plan.follow);
  metrics.Moved(std::exchange(memory.state, StateOf(job->status)), StateOf(job->status));

  std::optional<base::Duration> again = plan.requeue_after;
  Sooner(again, memory.expectations.Remaining(now));
  if (stop.stop_requested()) return Result{};
  const bool write = plan.write_status && !memory.dropped.Keep(job->status, plan.status);
  if (write) {
    if (!plan.status_is_urgent && plan.stages.empty()) {
      if (const std::optional<base::Duration> wait = ProgressWait(memory)) {
        Sooner(again, wait);
        return Result{again};
      }
    }
    const absl::Status written = WriteStatus(key, observed, plan.status, memory);
    if (absl::IsAborted(written)) {
      return Result{memory.conflicts.Conflicted(job->resource_version, clock.Now())};
    }
    // The watch brings its end, unless it was a proxy that knew nothing of the job.
    const bool gone = absl::IsNotFound(written);
    if (!std::exchange(memory.status_not_found, gone) && gone) {
      return Result{Expectations::kPatience};
    }
    if (!written.ok()) return written;
  }
  if (write) LogJobChange(key, *job, plan.status, plan.events);
  memory.settled.Add(plan.settled);
  memory.backoff = plan.backoff;
  SendEvents(job->job.metadata, plan.events);
  if (absl::Status done = executor.CarryOut(key, plan, observed, memory, again, std::move(stop));
      !done.ok()) {
    return done;
  }
  return Result{again};
}

// Until a write that only carries progress may go out; none: now.
std::optional<base::Duration> Reconciler::Impl::ProgressWait(JobMemory& memory) const {
  const base::Instant now = clock.Now();
  if (memory.status_written && now - *memory.status_written < options.progress_period) {
    return *memory.status_written + options.progress_period - now;
  }
  if (!memory.progress_place) memory.progress_place = now + throttle.Reserve(now);
  if (now < *memory.progress_place) return *memory.progress_place - now;
  memory.progress_place.reset();
  return std::nullopt;
}

absl::Status Reconciler::Impl::WriteStatus(const std::string& key, const plan::Observed& observed,
                                           const api::JobStatus& status, JobMemory& memory) {
  const plan::ObservedJob& job = *observed.job;
  const api::Metadata& metadata = job.job.metadata;
  const json update = StatusUpdate(job, status);
  if (observed.lives) memory.lives.Offer(status.cost);
  const absl::StatusOr<json> written =
      client.Update(kHeteroTrainingJobs, {metadata.name_space, metadata.name}, update, "status");
  if (!written.ok()) {
    return absl::Status(written.status().code(),
                        absl::StrCat("status of job ", key, ": ", written.status().message()));
  }
  memory.writes.Written(job, status, TextOf(FieldOf(*written, "metadata"), "resourceVersion"));
  memory.conflicts.Written();
  if (memory.dropped.Learn(FieldOf(update, "status"), FieldOf(*written, "status"))) {
    TellOfOldDefinition(memory.dropped.Names());
  }
  memory.status_written = clock.Now();
  if (observed.lives) memory.lives.Stored();
  metrics.Written(observed, status);
  metrics.Moved(std::exchange(memory.state, StateOf(status)), StateOf(status));
  return absl::OkStatus();
}

// Once: it is the same for every job.
void Reconciler::Impl::TellOfOldDefinition(const std::string& dropped) {
  if (old_definition_told.exchange(true)) return;
  log::Warning(
      "the API server drops fields of a job's status: the resource definition in the cluster is "
      "older than this operator; apply the one of this release",
      {{"definition", absl::StrCat(api::kPlural, ".", api::kGroup)},
       {"dropped", dropped},
       {"command", "kubectl apply -f charts/hetero-operator/crds/"}});
}

void Reconciler::Impl::SendEvents(const api::Metadata& job,
                                  const std::vector<plan::Event>& planned) {
  for (const plan::Event& event : planned) {
    events.Record({.api_version = api::kApiVersion,
                   .kind = api::kKind,
                   .name_space = job.name_space,
                   .name = job.name,
                   .uid = job.uid},
                  event.warning ? kube::EventType::kWarning : kube::EventType::kNormal,
                  event.reason, event.action, event.note);
  }
}

Reconciler::Reconciler(kube::Client& client, base::Clock& clock, metrics::Registry& registry,
                       Stores stores, kube::EventRecorder& events, Heads& heads,
                       const OperatorIdentity& identity, Options options)
    : impl_(std::make_unique<Impl>(client, clock, registry, stores, events, heads, identity,
                                   std::move(options))) {}

Reconciler::~Reconciler() = default;

absl::StatusOr<Result> Reconciler::Reconcile(const std::string& key, std::stop_token stop) {
  return impl_->Reconcile(key, std::move(stop));
}

}  // namespace hetero::reconcile
