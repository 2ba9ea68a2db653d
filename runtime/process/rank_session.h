#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/feed/sample_producer.h"
#include "runtime/feed/stream_dump.h"
#include "runtime/feed/ticket_client.h"
#include "runtime/head/member.h"
#include "runtime/job/schedule.h"
#include "runtime/process/identity.h"
#include "runtime/process/membership.h"
#include "runtime/process/metrics_port.h"
#include "runtime/process/rank_report.h"
#include "runtime/process/resource_sampler.h"

namespace hetero::process {

// One rank's place in the job: its membership, its schedule and the streams of its batches. The
// trainer and the input-only consumer both stand on it. One thread uses it.
class RankSession {
 public:
  struct Options {
    Identity identity;
    std::string metrics_address;  // as of a CPU worker; empty: none
    int local_threads = 0;        // for its own share of the preprocessing; 0: usable cores
    feed::LocalShare local_share = feed::LocalShare::kLastResort;
    // The process's own stop is a wish of this rank to leave, and not the end of the job.
    bool leaves_alone = false;
    // Of a rank on the CPU: cores that are not there to share; 0: all of them.
    int training_threads = 0;
    std::string dump_stream_folder;  // empty: consumed batches are not written
    // Another rank of this process tells what the process costs.
    bool costs_told_by_another = false;
    // CPU time of processes beside this one that are this rank's.
    std::function<double()> other_cpu_seconds;
    std::function<void(const std::string&)> print;  // console lines
    // As head::Member's; empty for a rank without a script.
    std::function<void(const v1::ScriptDecision&)> on_script_decision;
    std::function<std::vector<v1::ScriptWord>()> script_words;

    // For calls to a process of that role type.
    base::TlsOptions tls_to(const char* role_type) const {
      return TlsWith(identity.tls, identity.job_uid, {role_type});
    }
  };

  // Joins the head, waits until the whole job has, opens the dataset.
  // kCancelled when told to stop meanwhile, kAborted when asked to leave.
  static absl::StatusOr<std::unique_ptr<RankSession>> Join(Options options, base::Clock& clock,
                                                           std::stop_token stop);
  ~RankSession();

  const api::HeteroTrainingJob& job() const { return job_; }
  int32_t rank() const { return rank_; }
  int32_t world_size() const { return job_.spec.world_size(); }
  // Unique per run of the job, the same in all its processes and after restarts.
  std::string run() const;
  std::string name() const { return MemberName(options_.identity.member); }
  const feed::SampleProducer& producer() const { return *producer_; }
  const job::Schedule& schedule() const { return *schedule_; }
  // The stream of the batches from `index` of the schedule on. It is the one of the last call when
  // that stands there, and takes its place otherwise.
  feed::BatchStream& BatchesFrom(int64_t index);
  // Of batches that wait in memory, of one stream.
  int64_t byte_budget() const { return stream_options_.byte_budget; }
  // For all streams that are opened from now on, as in feed::TicketClient::Options.
  void UseMemory(feed::SlabSource slabs, bool moves_shared) {
    stream_options_.slabs = std::move(slabs);
    stream_options_.moves_shared = moves_shared;
  }
  // Every sample of the validation set once, over all ranks, beside the batches of the schedule.
  struct ValidationPass {
    int64_t batches = 0;                        // the same on all ranks
    std::unique_ptr<feed::BatchStream> stream;  // null without a validation set
  };
  // One at a time; its stream does not outlive the session.
  ValidationPass OpenValidation();
  RankReport& report();
  // As Membership::WaitForGeneration; a lost member has as long to come back as it had to start.
  absl::StatusOr<Membership::OpenGeneration> NextGeneration(int64_t after);
  // Told to the head with every heartbeat, until a newer generation opens.
  void ReportBroken(int64_t generation, const std::string& why);
  // The same for a generation that this rank's script ended.
  void ReportScriptFailure(const v1::ScriptFailure& failure);
  // As head::Member::Tell().
  void TellScriptWord(const v1::ScriptWord& word) { member_->Tell(word); }
  // Every consumed batch, before it is used: counts it, and writes it when a dump was asked for.
  void OnBatch(const feed::Batch& batch);
  // Requested when the job ends, or this process is not wanted.
  std::stop_token stop_token() const { return membership_.stop_token(); }
  // Requested when this rank alone shall leave; never without Options::leaves_alone.
  std::stop_token leave_token() const { return membership_.leave_token(); }
  // Set when the head wants this rank to write a checkpoint; whoever does takes it back.
  std::atomic<bool>& checkpoint_wish() { return membership_.checkpoint_wish(); }

  // Says the last word to the head and waits for its answer. Returns `result`, or the head's
  // refusal. kCancelled counts as "stopped on request", kAborted as "has left on request" where
  // this rank was asked to, else as a failure. Rank 0 leaves the result of a completed training as
  // its pod's termination message.
  absl::Status Finish(absl::Status result);

 private:
  RankSession(Options options, std::unique_ptr<MetricsPort> metrics, base::Clock& clock,
              std::stop_token stop);
  class PositionedStream;
  class ValidationStream;
  absl::Status WaitForJob();
  absl::Status OpenReport();
  std::unique_ptr<feed::TicketClient> OpenStream(int64_t index) const;
  // How this rank's streams are served, wherever they begin.
  absl::StatusOr<feed::TicketClient::Options> StreamOptions();
  // That fit into the window.
  int64_t WindowBatches() const;
  // Ranks that are in this one's pod, or on this machine.
  int32_t RanksBeside() const;
  // This host's cores that training leaves over, of one rank.
  int SpareCores() const;
  // Finds and measures the places where the pipeline may be cut.
  absl::Status PlaceOperators(int spare, bool shares, feed::TicketClient::Options* stream);
  std::vector<v1::OrderCost> OrderCosts() const;
  void AddPlacement(v1::Heartbeat* heartbeat) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddFaults(v1::Heartbeat* heartbeat) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnRoster(const google::protobuf::RepeatedPtrField<v1::CpuWorker>& workers);
  // With `last`, what the process uses is told up to now.
  v1::Heartbeat TakeHeartbeat(bool last);
  void PublishWaiting();

  const Options options_;
  base::Clock& clock_;
  std::unique_ptr<MetricsPort> metrics_;            // null without an address
  const std::unique_ptr<ResourceSampler> sampler_;  // null: another rank's tells
  Membership membership_;
  api::HeteroTrainingJob job_;
  int64_t first_generation_ = 0;
  int64_t reached_step_ = 0;  // by processes before this one
  int32_t rank_ = 0;
  std::unique_ptr<feed::SampleProducer> producer_;
  std::unique_ptr<job::Schedule> schedule_;
  std::vector<feed::CutCost> cuts_;
  std::vector<v1::OrderCost> order_costs_;  // rank 0; as it is told, from when there is a report
  feed::TicketClient::Options stream_options_;
  int64_t batch_bytes_ = 0;
  std::unique_ptr<feed::StreamDump> dump_;  // null without --dump-stream

  base::Mutex mutex_;  // heartbeats and rosters come at any time
  std::vector<feed::WorkerAddress> roster_ ABSL_GUARDED_BY(mutex_);
  int64_t newest_generation_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t broken_generation_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<v1::ScriptFailure> script_failure_ ABSL_GUARDED_BY(mutex_);  // of that generation
  std::unique_ptr<RankReport> report_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PositionedStream> batches_ ABSL_GUARDED_BY(mutex_);
  feed::TicketClient* validation_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the pass at hand

  std::unique_ptr<head::Member> member_;  // last: its callbacks use all of the above
};

}  // namespace hetero::process
