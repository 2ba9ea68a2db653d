#include "tests/integration/page/played_job.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/head/report_builder.h"
#include "runtime/head/status_builder.h"

namespace hetero::played {
namespace {

constexpr int64_t kStepsOfSecond = 5;
constexpr int64_t kTotalSteps = 6000;
constexpr int64_t kSamplesOfStep = 128;
constexpr int64_t kNanoseconds = 1'000'000'000;
constexpr int kCores = 16;
constexpr char kScript[] = "<script>document.title = 'taken over'</script>";

// Between 0 and 1, another one for each member and second, always the same.
double Noise(int64_t a, int64_t b) {
  const double value = std::sin(static_cast<double>(a) * 12.9898 + static_cast<double>(b) * 78.233);
  return std::abs(value * 43758.5453 - std::floor(value * 43758.5453));
}

void Fill(std::initializer_list<std::pair<double, int64_t>> values, v1::Histogram* histogram) {
  insight::Histogram all;
  for (const auto& [value, times] : values) all.Add(value, times);
  for (const auto& [bucket, count] : all.buckets()) {
    histogram->add_bucket(bucket);
    histogram->add_count(count);
  }
}

void AddLives(int64_t second, const std::string& worker, v1::Heartbeat& beat) {
  v1::BatchLife& life = *beat.add_lives();
  life.set_ticket(second * kStepsOfSecond);
  life.set_step(second * kStepsOfSecond);
  life.set_worker(worker);
  life.set_asked_unix_ns((1'700'000'000 + second) * kNanoseconds);
  life.set_queued_seconds(0.02);
  life.set_work_seconds(0.3);
  life.set_transfer_seconds(0.01);
  life.set_window_seconds(0.004);
  life.set_handover_seconds(0.001);
  life.set_step_seconds(0.13);
  life.set_read_seconds(0.06);
  life.set_samples(64);
  v1::LifeHistograms& all = *beat.mutable_life_histograms();
  Fill({{0.02, second}, {0.09, second / 20}}, all.mutable_queued());
  Fill({{0.3, second}, {0.8, second / 15}}, all.mutable_work());
  Fill({{0.01, second}}, all.mutable_transfer());
  Fill({{0.004, second}}, all.mutable_window());
  Fill({{0.001, second}}, all.mutable_handover());
  Fill({{0.13, second * kStepsOfSecond}}, all.mutable_step());
}

}  // namespace

int RanksOf(int workers) { return workers < 8 ? 1 : std::min(8, workers / 8); }

api::HeteroTrainingJob JobOf(int workers) {
  api::HeteroTrainingJob job;
  job.metadata.name = absl::StrCat("played-", workers);
  job.spec.run_policy.member_timeout_seconds = 30;
  job.spec.run_policy.startup_deadline_seconds = 600;
  for (const auto op : {api::OperatorKind::kDecode, api::OperatorKind::kGaussianBlur,
                        api::OperatorKind::kNormalize}) {
    job.spec.pipeline.emplace_back().op = op;
  }
  api::Role head;
  head.name = "head";
  head.type = api::RoleType::kHead;
  api::Role cpu;
  cpu.name = "cpu";
  cpu.type = api::RoleType::kCpuWorker;
  cpu.replicas = workers;
  cpu.min_replicas = 1;
  cpu.max_replicas = workers;
  cpu.price_per_hour = "0.68";
  api::Role gpu;
  gpu.name = "gpu";
  gpu.type = api::RoleType::kGpuWorker;
  gpu.replicas = std::max(1, workers / 30);
  gpu.gpus_per_replica = RanksOf(workers);
  gpu.price_per_hour = "12.24";
  job.spec.roles = {head, cpu, gpu};
  return job;
}

PlayedJob::PlayedJob(int workers) : drive_(JobOf(workers)) {
  const base::MutexLock lock(mutex_);
  head::StreamId stream = 0;
  for (int32_t i = 0; i < workers; ++i) {
    actors_.push_back({.stream = ++stream, .role = "cpu", .index = i});
  }
  const int32_t nodes = std::max(1, workers / 30);
  for (int32_t i = 0; i < nodes; ++i) {
    for (int32_t local = 0; local < RanksOf(workers); ++local) {
      actors_.push_back({.stream = ++stream,
                         .role = "gpu",
                         .index = i,
                         .local = local,
                         .rank = i * RanksOf(workers) + local});
    }
  }
  for (Actor& actor : actors_) {
    v1::Hello hello = head::MakeHello(actor.role, actor.index, actor.local);
    hello.set_node(absl::StrCat("node-", actor.role, "-", actor.index / 4));
    drive_.Hello(actor.stream, hello);
    actor.name = drive_.state.record().members.at({actor.role, actor.index, actor.local}).name;
  }
}

void PlayedJob::PlaySeconds(int seconds) {
  const base::MutexLock lock(mutex_);
  for (int i = 0; i < seconds; ++i) PlaySecond();
}

void PlayedJob::PlaySecond() {
  drive_.elapsed += std::chrono::seconds(1);
  ++second_;
  for (Actor& actor : actors_) {
    if (actor.name == "cpu-2" && second_ == 70) KillAndReplace(actor);
    drive_.Apply(head::HeartbeatReceived{actor.stream, Beat(actor)});
  }
  drive_.Apply(head::Tick{});
}

void PlayedJob::KillAndReplace(Actor& actor) {
  drive_.Apply(head::ProcessEnded{.member = actor.name,
                                  .incarnation = actor.incarnation,
                                  .message = "the process ended: killed by SIGKILL"});
  drive_.Apply(head::StreamClosed{actor.stream, true});
  actor.stream += 1'000'000;
  actor.samples = 0;
  v1::Hello hello = head::MakeHello(actor.role, actor.index, actor.local, ++actor.incarnation);
  hello.set_node("node-cpu-0");
  drive_.Hello(actor.stream, hello);
}

v1::Heartbeat PlayedJob::Beat(Actor& actor) {
  v1::Heartbeat beat;
  beat.set_sent_unix_ns((1'700'000'000 + second_) * kNanoseconds);
  const bool slow = actor.name == "cpu-1";
  const auto made = static_cast<int64_t>((slow ? 40 : 100) + 10 * Noise(actor.stream, second_));
  actor.samples += made;
  beat.mutable_counters()->set_samples(actor.samples);
  beat.mutable_counters()->set_batches(actor.samples / 64);
  beat.mutable_counters()->set_busy_seconds(static_cast<double>(second_));
  beat.mutable_counters()->set_cpu_seconds(static_cast<double>(second_) * 7);
  if (actor.rank < 0) {
    for (const double cost : {0.002, 0.009, 0.0}) {
      v1::OperatorCost& told = *beat.add_operator_costs();
      told.set_samples(actor.samples);
      told.set_cpu_seconds(cost * static_cast<double>(actor.samples));
    }
  } else {
    AddProgress(actor, beat);
    AddLives(second_, "cpu-1", beat);
  }
  AddUse(actor, beat);
  if ((second_ + actor.stream) % 20 == 0) {
    v1::LogLine& line = *beat.add_log_lines();
    line.set_unix_ns(beat.sent_unix_ns());
    line.set_text(absl::StrCat("info  ", actor.samples, " samples so far ", kScript));
  }
  return beat;
}

void PlayedJob::AddUse(const Actor& actor, v1::Heartbeat& beat) const {
  for (int half = 0; half < 2; ++half) {
    v1::ResourcePoint& point = *beat.add_resources();
    point.set_unix_ns(beat.sent_unix_ns() - (1 - half) * kNanoseconds / 2);
    point.set_seconds(0.5);
    point.set_cores(kCores);
    const double busy = (actor.rank >= 0         ? 2
                         : actor.name == "cpu-1" ? 6
                                                 : 14) +
                        1.5 * Noise(actor.stream, second_ * 2 + half);
    v1::ThreadGroupUse& group = *point.add_groups();
    group.set_group(actor.rank >= 0 ? "train" : "pipeline");
    group.set_cpu_seconds(busy * 0.5);
    group.set_threads(kCores);
    point.set_run_queue_seconds(0.2);
    point.set_rss_bytes((int64_t{900} + actor.index) << 20);
    point.set_received_bytes(12'000'000);
    point.set_sent_bytes(3'000'000);
    point.set_machine_busy_cores(busy);
    std::string cores;
    for (int core = 0; core < kCores; ++core) {
      const double share = busy / kCores * (0.7 + 0.3 * Noise(core, second_ / 3));
      cores.push_back(static_cast<char>(static_cast<uint8_t>(std::min(share, 1.0) * 255)));
    }
    point.set_core_busy(cores);
    if (actor.rank < 0) continue;
    v1::GpuUse& gpu = *point.add_gpus();
    gpu.set_index(actor.local);
    gpu.set_utilization(0.55 + 0.1 * Noise(actor.rank, second_));
    gpu.set_memory_used_bytes(int64_t{11} << 30);
    gpu.set_memory_total_bytes(int64_t{80} << 30);
  }
}

void PlayedJob::AddProgress(const Actor& actor, v1::Heartbeat& beat) const {
  v1::Progress& progress = *beat.mutable_progress();
  const auto seconds = static_cast<double>(second_);
  progress.set_step(second_ * kStepsOfSecond);
  progress.set_total_steps(kTotalSteps);
  progress.set_epoch(1 + progress.step() / 1000);
  progress.set_total_epochs(kTotalSteps / 1000);
  progress.set_samples_consumed(progress.step() * kSamplesOfStep);
  progress.set_digest_covers_job(true);
  progress.set_samples_per_second(640 + 40 * std::sin(seconds / 9) + 20 * Noise(7, second_));
  progress.set_data_wait_percent(38);
  progress.set_train_seconds(seconds);
  progress.set_first_step_unix_ns((1'700'000'000 + 2) * kNanoseconds);
  progress.set_loss(2.3 * std::exp(-seconds / 200) + 0.05 * Noise(3, second_));
  v1::PhaseSeconds& phases = *progress.mutable_phases();
  phases.set_wait(0.38 * seconds);
  phases.set_host_to_device(0.02 * seconds);
  phases.set_forward(0.18 * seconds);
  phases.set_backward(0.3 * seconds);
  phases.set_all_reduce(0.06 * seconds);
  phases.set_optimizer(0.03 * seconds);
  phases.set_other(0.03 * seconds);
  v1::WaitSeconds& waits = *progress.mutable_waits();
  waits.set_workers(0.33 * seconds);
  waits.set_transfer(0.04 * seconds);
  waits.set_handover(0.01 * seconds);
  if (actor.rank != 0) return;
  v1::LossPoint& point = *beat.add_losses();
  point.set_step(progress.step());
  point.set_loss(progress.loss());
  point.set_seconds_per_step(0.2);
  if (progress.step() % 200 == 0) {
    v1::EvaluationResult& result = *beat.add_evaluations();
    result.set_epoch(progress.epoch());
    result.set_step(progress.step());
    result.set_loss(progress.loss() * 1.1);
    result.set_accuracy(1 - std::exp(-seconds / 150) * 0.9);
    result.set_samples(5000);
  }
  for (const auto& [op, trainer] :
       {std::pair{"DecodeImage", false}, std::pair{"GaussianBlur", false},
        std::pair{"Normalize", true}}) {
    v1::PlacementReport& placed = *beat.add_placement();
    placed.set_op(op);
    placed.set_on_trainer(trainer);
    placed.set_reason("the CPU workers have room");
    placed.set_trainer_seconds(0.0002);
  }
}

void PlayedJob::Succeed() {
  const base::MutexLock lock(mutex_);
  for (Actor& actor : actors_) {
    v1::Finished finished;
    finished.set_ok(true);
    *finished.mutable_last() = Beat(actor);
    if (actor.rank >= 0) {
      finished.mutable_last()->mutable_progress()->set_step(kTotalSteps);
    }
    drive_.Apply(head::FinishedReceived{actor.stream, finished});
  }
  for (int tick = 0; tick < 100 && !drive_.state.ended(); ++tick) {
    drive_.elapsed += std::chrono::milliseconds(100);
    drive_.Apply(head::Tick{});
  }
}

v1::JobStatus PlayedJob::StatusLocked() const {
  return head::BuildStatus(drive_.state.record(), drive_.state.plan());
}

v1::JobStatus PlayedJob::status() const {
  const base::MutexLock lock(mutex_);
  return StatusLocked();
}

insight::Report PlayedJob::ReportSoFar() const {
  const base::MutexLock lock(mutex_);
  return head::BuildReport(drive_.state.record(), drive_.Time());
}

live::Snapshot PlayedJob::Look(head::LiveBuilder& builder) const {
  const base::MutexLock lock(mutex_);
  return builder.Build(drive_.state.record(), StatusLocked(), drive_.Time());
}

std::optional<live::MemberDetail> PlayedJob::LookAt(const std::string& member, bool whole,
                                                    double after) const {
  const base::MutexLock lock(mutex_);
  return head::BuildMemberDetail(drive_.state.record(), member, whole, after, drive_.Time());
}

}  // namespace hetero::played
