#include "runtime/train/checkpoint/checkpointer.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/storage/stores.h"
#include "runtime/train/checkpoint/checkpoint_bucket.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "runtime/train/checkpoint/state_tensors.h"

namespace hetero::train {
namespace {

constexpr char kFileScheme[] = "file://";
// Of a call that renews the lease: several of them fit into one.
constexpr base::Duration kRenewalPatience = std::chrono::seconds(8);

const char* NameOf(api::OptimizerKind kind) {
  switch (kind) {
    case api::OptimizerKind::kSgd:
      return "SGD";
    case api::OptimizerKind::kAdam:
      return "Adam";
    case api::OptimizerKind::kAdamW:
      return "AdamW";
  }
  __builtin_unreachable();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Checkpointer>> Checkpointer::Open(Options options,
                                                                 const job::StepPlan& plan,
                                                                 base::Clock& clock,
                                                                 std::stop_token stop) {
  HETERO_ASSIGN_OR_RETURN(Opened opened, OpenPlace(options, clock, std::move(stop)));
  return std::unique_ptr<Checkpointer>(
      new Checkpointer(std::move(options), plan, clock, std::move(opened)));
}

absl::StatusOr<Checkpointer::Opened> Checkpointer::OpenPlace(const Options& options,
                                                             base::Clock& clock,
                                                             std::stop_token stop) {
  const api::Checkpoint& spec = *options.job.spec.training.checkpoint;
  const bool locked = spec.lock == api::CheckpointLocking::kExclusive;
  const CheckpointLock::Owner owner{
      .run = options.run,
      .job = options.job.metadata.name,
      .host = ThisHost(),
      .process = absl::StrCat(options.member, ", process ", getpid())};
  Opened opened;
  if (absl::StartsWith(spec.uri, kFileScheme)) {
    auto folder =
        std::make_unique<CheckpointFolder>(std::string(absl::StripPrefix(spec.uri, kFileScheme)));
    HETERO_RETURN_IF_ERROR(folder->Create());
    if (locked) {
      HETERO_ASSIGN_OR_RETURN(opened.lock,
                              CheckpointLock::Take(folder->path(), owner, clock, std::move(stop)));
    }
    opened.place = std::move(folder);
    return opened;
  }
  const storage::Stores stores(options.job.spec.storage);
  HETERO_ASSIGN_OR_RETURN(std::unique_ptr<storage::WritableStore> store,
                          stores.OpenWritable(spec.uri));
  CheckpointBucket::MayWrite may_write = [] { return absl::OkStatus(); };
  if (locked) {
    HETERO_ASSIGN_OR_RETURN(std::unique_ptr<storage::WritableStore> lock_store,
                            stores.OpenWritable(spec.uri, {.total = kRenewalPatience}));
    HETERO_ASSIGN_OR_RETURN(
        opened.lease, CheckpointLease::Take(std::move(lock_store), owner, clock, std::move(stop)));
    may_write = [lease = opened.lease.get()] { return lease->Check(); };
  }
  opened.place = std::make_unique<CheckpointBucket>(std::move(store), std::move(may_write), locked);
  return opened;
}

Checkpointer::Checkpointer(Options options, const job::StepPlan& plan, base::Clock& clock,
                           Opened opened)
    : options_(std::move(options)),
      spec_(*options_.job.spec.training.checkpoint),
      plan_(plan),
      clock_(clock),
      opened_(std::move(opened)),
      started_at_(clock.Now()),
      writer_(*opened_.place, {.keep = spec_.keep, .prune_run = run_filter()}, clock) {}

// With resume: Never, what other runs left is neither used nor touched.
std::string Checkpointer::run_filter() const {
  return spec_.resume == api::ResumeMode::kNever ? options_.run : "";
}

CheckpointManifest Checkpointer::Describe() const {
  const api::Training& training = options_.job.spec.training;
  CheckpointManifest manifest;
  manifest.job = options_.job.metadata.name;
  manifest.run = options_.run;
  manifest.created_unix_ns =
      std::chrono::duration_cast<base::Duration>(clock_.WallNow().time_since_epoch()).count();
  manifest.world_size = options_.world_size;
  manifest.model = training.model.name;
  manifest.classes = options_.classes;
  manifest.input = options_.input;
  manifest.optimizer = NameOf(training.optimizer.name);
  manifest.samples = options_.samples;
  manifest.dataset_fingerprint = options_.dataset_fingerprint;
  manifest.dataset_versions = options_.dataset_versions;
  manifest.seed = training.seed;
  manifest.global_batch = plan_.global_batch();
  manifest.order = job::SampleOrderOf(options_.job);
  return manifest;
}

// Where the next step begins; of the last one, where it ends.
Checkpointer::Place Checkpointer::PlaceAfter(int64_t step) const {
  if (step < plan_.total_steps()) {
    const job::Step next = plan_.At(step);
    return {next.epoch, next.slots.first};
  }
  const job::Step last = plan_.At(plan_.total_steps() - 1);
  return {last.epoch, last.slots.first + last.slots.count};
}

absl::Status Checkpointer::CheckGoesOn(const CheckpointManifest& manifest) const {
  constexpr char kRemedy[] =
      "choose another spec.training.checkpoint.uri, or start anew with resume: Never";
  if (manifest.step < 0 || manifest.step > plan_.total_steps()) {
    return absl::FailedPreconditionError(
        absl::StrCat("has ", manifest.step, " steps done, but this job has only ",
                     plan_.total_steps(), ". Raise spec.training.epochs or maxSteps, ", kRemedy));
  }
  // The job that wrote it may have ended there.
  Place end = PlaceAfter(manifest.step);
  if (manifest.step > 0) {
    const job::Step last = plan_.At(manifest.step - 1);
    end = {last.epoch, last.slots.first + last.slots.count};
  }
  const Place stored{manifest.epoch, manifest.next_slot};
  const Place ours = PlaceAfter(manifest.step);
  if (stored != ours && stored != end) {
    return absl::FailedPreconditionError(
        absl::StrCat("stood before slot ", stored.slot, " of epoch ", stored.epoch, " after step ",
                     manifest.step, ", but this job stands before slot ", ours.slot, " of epoch ",
                     ours.epoch, " there: it takes its samples in another order; ", kRemedy));
  }
  const bool follows_ranks = options_.job.spec.training.schedule.scale_learning_rate ==
                             api::LearningRateScaling::kLinearWithWorldSize;
  if (follows_ranks && manifest.world_size != options_.world_size) {
    return absl::FailedPreconditionError(absl::StrCat(
        "was trained by ", manifest.world_size, " ranks, this job has ", options_.world_size,
        ", and spec.training.schedule.scaleLearningRate: LinearWithWorldSize would change the "
        "learning rate by that, for steps of as many samples. Set it to None, and "
        "spec.training.optimizer.learningRate to ",
        manifest.world_size, " times its value"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<CheckpointPlace::Loaded>> Checkpointer::Load() {
  writer_.Wait();                  // what is being written may be the newest
  if (opened_.lease != nullptr) {  // what is there may be another job's by now
    if (const absl::Status held = opened_.lease->Check(); !held.ok()) {
      return absl::FailedPreconditionError(absl::StrCat("cannot resume: ", held.message()));
    }
  }
  absl::StatusOr<CheckpointPlace::Loaded> loaded =
      opened_.place->LoadNewest(Describe(), run_filter());
  if (absl::IsNotFound(loaded.status())) return std::nullopt;
  HETERO_RETURN_IF_ERROR(loaded.status());
  const CheckpointManifest& manifest = loaded->manifest;
  if (const absl::Status status = CheckGoesOn(manifest); !status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("cannot resume: ", loaded->folder, " ", status.message()));
  }
  for (const std::string& damaged : loaded->damaged) {
    log::Warning("passed over a damaged checkpoint", {{"checkpoint", damaged}});
  }
  for (const char* file : {kModelFile, kOptimizerFile}) {
    if (!loaded->files.contains(file)) {
      return absl::FailedPreconditionError(absl::StrCat(loaded->folder, " has no ", file));
    }
  }
  started_step_ = written_step_ = manifest.step;
  // The same names, sizes and counts: a copy has other versions too, so the job goes on.
  notice_.clear();
  if (!manifest.dataset_versions.empty() &&
      manifest.dataset_versions != options_.dataset_versions) {
    notice_ = absl::StrCat("the dataset's objects are others than when ", loaded->folder,
                           " was written: if they are no copy, training goes on with other data");
    log::Warning(notice_);
  }
  log::Info("resumes from a checkpoint", {{"checkpoint", loaded->folder},
                                          {"step", manifest.step},
                                          {"ranksThen", manifest.world_size}});
  return *std::move(loaded);
}

Standing Checkpointer::StandingOf(const CheckpointManifest& manifest) {
  return {.step = manifest.step,
          .evaluated_step = manifest.evaluated_step,
          .digest = manifest.digest,
          .samples_consumed = manifest.samples_consumed};
}

bool Checkpointer::IntervalIsOver() const {
  const std::optional<int64_t> interval = spec_.interval_seconds();
  return interval && clock_.Now() - started_at_ >= std::chrono::seconds(*interval);
}

bool Checkpointer::WantsComparison(int64_t step) const {
  if (!spec_.usual() || step == 0 || step == started_step_ || writer_.busy()) return false;
  return overdue_ || IntervalIsOver();
}

bool Checkpointer::IsDue(int64_t step, bool compared) const {
  if (step == 0 || step == started_step_) return false;
  if (wanted_) return true;
  if (spec_.every_steps && step % *spec_.every_steps == 0) return true;
  if ((compared || !spec_.usual()) && (overdue_ || IntervalIsOver())) return true;
  return spec_.usual() && plan_.IsLastOfEpoch(step - 1);
}

bool Checkpointer::IsDueAfter(int64_t step, bool compared, Observer& observer) {
  Report(writer_.Take(), observer);
  if (!IsDue(step, compared)) return false;
  overdue_ = writer_.busy();
  if (!overdue_) wanted_ = false;
  return !overdue_;
}

void Checkpointer::Keep(const Standing& standing, int64_t generation,
                        CheckpointWriter::Source source, Observer& observer) {
  Settle(observer);
  if (written_step_ == standing.step || standing.step == 0) return;
  Start(standing, generation, std::move(source));
}

void Checkpointer::Finish(const Standing& standing, int64_t generation,
                          CheckpointWriter::Source source, Observer& observer) {
  Keep(standing, generation, std::move(source), observer);
  Settle(observer);
}

void Checkpointer::Start(const Standing& standing, int64_t generation,
                         CheckpointWriter::Source source) {
  CheckpointManifest manifest = Describe();
  manifest.generation = generation;
  manifest.step = standing.step;
  manifest.evaluated_step = standing.evaluated_step;
  manifest.digest = standing.digest;
  manifest.samples_consumed = standing.samples_consumed;
  const Place place = PlaceAfter(standing.step);
  manifest.epoch = place.epoch;
  manifest.next_slot = place.slot;
  started_step_ = standing.step;
  started_at_ = clock_.Now();
  writer_.Start(std::move(manifest), std::move(source));
}

void Checkpointer::Report(const std::optional<CheckpointWriter::Result>& result,
                          Observer& observer) {
  if (!result) return;
  if (!result->status.ok()) {
    log::Warning("a checkpoint could not be written",
                 {{"step", result->step}, {"reason", result->status.message()}});
    observer.OnCheckpointProblem(absl::StrCat("the checkpoint of step ", result->step,
                                              " could not be written: ", result->status.message()));
    return;
  }
  written_step_ = result->step;
  log::Info("wrote a checkpoint",
            {{"step", result->step}, {"folder", result->folder}, {"seconds", result->seconds}});
  observer.OnCheckpoint(opened_.place->UriOf(result->folder), result->step);
}

}  // namespace hetero::train
