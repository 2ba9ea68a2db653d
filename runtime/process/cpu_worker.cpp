#include "runtime/process/cpu_worker.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/manifest.h"
#include "api/operators.h"
#include "api/role_type.h"
#include "base/log.h"
#include "base/process_usage.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "runtime/feed/sample_producer.h"
#include "runtime/feed/worker_server.h"
#include "runtime/head/member.h"
#include "runtime/head/text_limits.h"
#include "runtime/process/last_word.h"
#include "runtime/process/log_lines.h"
#include "runtime/process/membership.h"
#include "runtime/process/metrics_port.h"
#include "runtime/process/process_costs.h"
#include "runtime/process/python.h"
#include "runtime/process/ready.h"
#include "runtime/process/resource_sampler.h"

namespace hetero::process {
namespace {

// A head may wait long for its node; whoever starts the processes ends them when it takes too long.
constexpr base::Duration kWelcomeTimeout = std::chrono::hours(24);
constexpr base::Duration kFinishTimeout = std::chrono::seconds(1);

// Of batches in work and on their way: what is decoded, and read ahead, needs memory too.
int64_t BatchMemory() {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return std::min(base::CgroupMemoryLimit().value_or(machine), machine) / 4;
}

// The samples of a job, and who calls its Python operators.
struct Production {
  std::unique_ptr<interpreter::Interpreters> python;  // null: there are none
  std::unique_ptr<feed::SampleProducer> producer;
  std::vector<std::string> operators;  // names of the pipeline's entries
};

void AddOperatorCosts(const feed::SampleProducer& producer, v1::Heartbeat& heartbeat) {
  for (const pipeline::OperatorCost& cost : producer.costs()) {
    v1::OperatorCost* out = heartbeat.add_operator_costs();
    out->set_samples(cost.samples);
    out->set_cpu_seconds(base::ToSeconds(cost.cpu));
    out->set_python_seconds(base::ToSeconds(cost.python));
  }
}

// `made`: null before there is one.
v1::Heartbeat CountersOf(const feed::WorkerServer& server, const Production* made) {
  const feed::WorkerCounters counters = server.counters();
  v1::Heartbeat heartbeat;
  v1::Counters& out = *heartbeat.mutable_counters();
  out.set_batches(counters.batches);
  out.set_samples(counters.samples);
  out.set_bytes(counters.bytes);
  out.set_busy_seconds(counters.busy_seconds);
  out.set_produce_seconds(counters.produce_seconds);
  out.set_read_seconds(counters.read_seconds);
  SetProcessCosts(out);
  if (made == nullptr) return heartbeat;
  AddOperatorCosts(*made->producer, heartbeat);
  if (const interpreter::Interpreters* python = made->python.get()) {
    out.set_cpu_seconds(out.cpu_seconds() + python->counters().cpu_seconds);
    heartbeat.set_irreproducible(base::ToUtf8(python->irreproducible(), head::kMaxListedText));
  }
  return heartbeat;
}

std::vector<std::string> OperatorNames(const api::HeteroTrainingJob& job) {
  std::vector<std::string> names;
  for (const api::OperatorSpec& entry : job.spec.pipeline) {
    names.emplace_back(api::OperatorName(entry.op));
  }
  return names;
}

absl::StatusOr<Production> MakeProduction(const v1::Welcome& welcome, const std::stop_token& stop) {
  const api::ManifestResult manifest = api::ParseJobDocument(welcome.job_json());
  if (!manifest.errors.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the head sent an invalid job:\n", api::FormatErrors(manifest.errors)));
  }
  Production made{.operators = OperatorNames(manifest.job)};
  HETERO_ASSIGN_OR_RETURN(made.python, StartPython(manifest.job.spec, {}, stop));
  HETERO_ASSIGN_OR_RETURN(made.producer, feed::SampleProducer::Create(
                                             manifest.job, base::Clock::Real(), made.python.get()));
  return made;
}

}  // namespace

absl::Status RunCpuWorker(const CpuWorkerOptions& options, base::Clock& clock,
                          std::stop_token stop) {
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<MetricsPort> metrics,
                          MetricsPort::Open(options.metrics_address, clock));
  ResourceSampler sampler({}, clock);
  // Declared before the server, which serves from it until it is destroyed.
  Production production;
  std::atomic<const Production*> serving = nullptr;  // &production, once it is there
  HETERO_ASSIGN_OR_RETURN(
      std::unique_ptr<feed::WorkerServer> server,
      feed::WorkerServer::Start(
          {.listen_address = options.listen_address,
           .tls = TlsWith(options.identity.tls, options.identity.job_uid, {api::kGpuWorkerType}),
           .name = MemberName(options.identity.member),
           .threads = options.threads > 0 ? options.threads : CoresFromEnvironment(),
           .batch_memory_bytes = BatchMemory()},
          clock));

  Membership membership(stop);
  head::Member::Options join{
      .head_address = options.identity.head_address,
      .tls = TlsWith(options.identity.tls, options.identity.job_uid, {api::kHeadType}),
      .hello = MakeHello(options.identity)};
  join.hello.set_address(AdvertisedAddress(server->address(), options.identity.host));
  std::unique_ptr<head::Member> member = head::Member::Start(
      std::move(join), membership.MakeCallbacks(),
      [&] {
        v1::Heartbeat heartbeat = CountersOf(*server, serving);
        AddLogLines(heartbeat);
        sampler.Take(/*until_now=*/false, heartbeat);
        if (metrics) metrics->UpdateWorker(heartbeat);
        return heartbeat;
      },
      clock);

  const auto finish = [&](const absl::Status& status) {
    v1::Finished last;
    last.set_ok(status.ok());
    last.set_message(
        base::ToUtf8({status.message().data(), status.message().size()}, head::kMaxText));
    *last.mutable_last() = CountersOf(*server, serving);
    sampler.Take(/*until_now=*/true, *last.mutable_last());
    v1::Finished word = last;
    AddLogLines(*last.mutable_last());
    word.set_leaving(stop.stop_requested());  // asked by a signal, not by the head
    WriteLastWord(LastWordFolderFromEnvironment(), options.identity.member, word);
    member->Finish(last, kFinishTimeout).IgnoreError();
    return status;
  };

  absl::StatusOr<v1::Welcome> welcome = membership.WaitForWelcome(kWelcomeTimeout);
  if (absl::IsCancelled(welcome.status())) return absl::OkStatus();
  HETERO_RETURN_IF_ERROR(welcome.status());
  absl::StatusOr<Production> made = MakeProduction(*welcome, stop);
  if (absl::IsCancelled(made.status())) return finish(absl::OkStatus());
  if (!made.ok()) return finish(made.status());
  production = *std::move(made);
  if (metrics) metrics->SetOperators(production.operators);
  serving = &production;
  if (production.python != nullptr) production.python->SetAlarm([&member] { member->Beat(); });
  const feed::SampleProducer& producer = *production.producer;
  server->SetProducer(&producer);
  v1::Ready ready = MakeReady(producer);
  if (production.python != nullptr) {
    ready.mutable_python()->insert(production.python->environment().begin(),
                                   production.python->environment().end());
  }
  member->SetReady(ready);
  if (metrics) metrics->SetReady();
  log::Info("serving", {{"address", server->address()},
                        {"samples", producer.dataset(job::Split::kTrain).size()}});

  membership.WaitForStop();
  if (production.python != nullptr) production.python->Stop();
  if (membership.superseded()) return absl::OkStatus();
  HETERO_RETURN_IF_ERROR(membership.refusal());
  return finish(absl::OkStatus());
}

}  // namespace hetero::process
