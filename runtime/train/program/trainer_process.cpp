#include "runtime/train/program/trainer_process.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "api/role_type.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/head/rendezvous_client.h"
#include "runtime/process/output_store.h"
#include "runtime/train/program/model_files.h"
#include "runtime/train/program/passing_folder.h"
#include "runtime/train/progress/training_curves.h"
#include "runtime/train/trainer.h"

namespace hetero::train {
namespace {

constexpr char kCurvesFolder[] = "tensorboard";
constexpr char kWeightsFile[] = "model.safetensors";  // as RunTrainer() leaves it
// Of a copy at the end: days of training wait for it.
constexpr base::Duration kCopyPatience = std::chrono::minutes(30);

// Passes what the loop says on to the head and the console.
class SessionObserver : public Observer {
 public:
  // `curves` may be null.
  SessionObserver(process::RankSession& session, const TrainerProcessOptions& options,
                  TrainingCurves* curves)
      : session_(session), options_(options), curves_(curves) {}

  void OnBatch(const feed::Batch& batch) override { session_.OnBatch(batch); }
  void OnComputation(const feed::Batch& batch) override { session_.report().OnComputation(batch); }
  void OnStep(const StepRecord& record) override {
    session_.report().OnStep(record.step, record.samples, record.loss, record.seconds,
                             /*has_loss=*/true);
    if (curves_ != nullptr) curves_->OnStep(record);
  }
  void OnEvaluation(const EvaluationRecord& record) override {
    v1::EvaluationResult result;
    result.set_epoch(record.epoch);
    result.set_step(record.step);
    result.set_loss(record.loss);
    result.set_accuracy(record.accuracy);
    result.set_samples(record.samples);
    session_.report().OnEvaluation(result);
    if (curves_ != nullptr) curves_->OnEvaluation(record);
  }
  void OnSkippedStep(int64_t) override { session_.report().OnSkippedStep(); }
  void OnResume(int64_t step, int64_t samples_consumed) override {
    session_.report().OnResume(step, samples_consumed);
  }
  void OnCheckpoint(const std::string& uri, int64_t step) override {
    session_.report().OnCheckpoint(uri, step);
  }
  void OnNotice(const std::string& line) override { session_.report().OnNotice(line); }
  void OnCheckpointProblem(const std::string& problem) override {
    session_.report().OnCheckpointProblem(problem);
  }
  void OnDigest(uint64_t high, uint64_t low, int64_t samples_consumed) override {
    session_.report().OnJobDigest(job::StreamDigest(high, low), samples_consumed);
  }
  void OnPhases(const Phases& phases, double train_seconds) override {
    v1::PhaseSeconds out;
    out.set_wait(phases.wait);
    out.set_host_to_device(phases.host_to_device);
    out.set_forward(phases.forward);
    out.set_backward(phases.backward);
    out.set_all_reduce(phases.all_reduce);
    out.set_optimizer(phases.optimizer);
    out.set_checkpoint(phases.checkpoint);
    out.set_evaluation(phases.evaluation);
    out.set_other(phases.other);
    session_.report().OnPhases(out, train_seconds);
    if (curves_ != nullptr) curves_->OnPhases(phases, train_seconds);
  }
  void OnEpochEnd(int64_t epoch, uint32_t parameter_crc) override {
    log::Info("epoch ended", {{"rank", session_.rank()},
                              {"epoch", epoch},
                              {"parameterCrc", static_cast<uint64_t>(parameter_crc)}});
    if (options_.on_epoch_end) options_.on_epoch_end(epoch, parameter_crc);
  }
  void OnCeiling(double samples_per_second) override {
    log::Info("probed the ceiling",
              {{"rank", session_.rank()}, {"samplesPerSecond", samples_per_second}});
    session_.report().OnCeiling(samples_per_second);
  }

 private:
  process::RankSession& session_;
  const TrainerProcessOptions& options_;
  TrainingCurves* curves_;
};

// The head's rendezvous service as the trainer's store.
class HeadStore : public KeyValueStore {
 public:
  explicit HeadStore(std::unique_ptr<head::RendezvousClient> client) : client_(std::move(client)) {}

  absl::Status Set(const std::string& key, const std::string& value) override {
    return client_->Set(key, value);
  }
  absl::StatusOr<std::string> Get(const std::string& key, base::Duration timeout) override {
    return client_->Get(key, timeout);
  }
  absl::Status Wait(const std::vector<std::string>& keys, base::Duration timeout) override {
    return client_->Wait(keys, timeout);
  }
  absl::StatusOr<bool> Check(const std::vector<std::string>& keys) override {
    return client_->Check(keys);
  }
  absl::StatusOr<int64_t> Add(const std::string& key, int64_t amount) override {
    return client_->Add(key, amount);
  }
  absl::StatusOr<std::string> CompareSet(const std::string& key, const std::string& expected,
                                         const std::string& desired) override {
    return client_->CompareSet(key, expected, desired);
  }
  absl::StatusOr<bool> Delete(const std::string& key) override { return client_->Delete(key); }
  absl::StatusOr<int64_t> CountKeys() override { return client_->CountKeys(); }

 private:
  std::unique_ptr<head::RendezvousClient> client_;
};

class SessionBatches : public BatchSource {
 public:
  explicit SessionBatches(process::RankSession& session) : session_(session) {}
  absl::StatusOr<feed::BatchStream*> From(int64_t index) override {
    return &session_.BatchesFrom(index);
  }

 private:
  process::RankSession& session_;
};

class SessionGenerations : public Generations {
 public:
  SessionGenerations(process::RankSession& session, const process::RankSession::Options& options,
                     base::Clock& clock)
      : session_(session), options_(options), clock_(clock) {}

  absl::StatusOr<Generation> Next(int64_t after, std::stop_token) override {
    HETERO_ASSIGN_OR_RETURN(process::Membership::OpenGeneration opened,
                            session_.NextGeneration(after));
    Generation next{.number = opened.generation.number(),
                    .host = options_.identity.host,
                    .over = std::move(opened.over)};
    HETERO_ASSIGN_OR_RETURN(
        std::unique_ptr<head::RendezvousClient> client,
        head::RendezvousClient::Connect(options_.identity.head_address,
                                        options_.tls_to(api::kHeadType), next.number, clock_));
    next.store = std::make_shared<HeadStore>(std::move(client));
    return next;
  }
  void ReportBroken(int64_t number, const std::string& why) override {
    session_.ReportBroken(number, why);
  }

 private:
  process::RankSession& session_;
  const process::RankSession::Options& options_;
  base::Clock& clock_;
};

// Where what is for a store lies until it is copied there.
class CopiedFolder {
 public:
  CopiedFolder(std::string uri, std::vector<api::StorageAccess> storage)
      : uri_(std::move(uri)), storage_(std::move(storage)) {}

  const std::string& path() const { return folder_.path(); }
  absl::Status Check() const { return Named(process::CheckOutputStore(uri_, storage_)); }
  absl::Status Copy(const std::stop_token& stop) const {
    HETERO_RETURN_IF_ERROR(Named(process::CopyOutput(path(), {kWeightsFile, kCurvesFolder}, uri_,
                                                     storage_, kCopyPatience, stop)));
    log::Info("copied the trained weights and the curves", {{"to", uri_}});
    return absl::OkStatus();
  }

 private:
  static absl::Status Named(const absl::Status& status) {
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat("spec.output.uri: ", status.message()));
  }

  const std::string uri_;
  const std::vector<api::StorageAccess> storage_;
  const PassingFolder folder_;
};

// Of rank 0, where the job's output is in a store and nothing else was asked for.
std::unique_ptr<CopiedFolder> FolderForStore(const process::RankSession& session,
                                             const TrainerProcessOptions& options) {
  const std::optional<api::Output>& output = session.job().spec.output;
  if (session.rank() != 0 || !options.output_folder.empty() || !output ||
      !process::IsStoreUri(output->uri)) {
    return nullptr;
  }
  auto folder = std::make_unique<CopiedFolder>(output->uri, session.job().spec.storage);
  if (!folder->path().empty()) return folder;
  log::Warning(
      "the trained weights will not be kept: there is no place for them until they are copied",
      {{"to", output->uri}, {"remedy", "give the GPU workers a writable TMPDIR"}});
  return nullptr;
}

// Where this rank may leave results; empty for all but rank 0 and when there is no such folder.
std::string OutputFolder(const process::RankSession& session,
                         const TrainerProcessOptions& options) {
  if (session.rank() != 0) return "";
  std::string folder = options.output_folder;
  const std::optional<api::Output>& output = session.job().spec.output;
  if (folder.empty() && output && absl::StartsWith(output->uri, "file://")) {
    folder = std::string(absl::StripPrefix(output->uri, "file://"));
  }
  if (folder.empty()) return "";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (access(folder.c_str(), W_OK) == 0) return folder;
  log::Warning(
      "the trained weights will not be kept: the output folder cannot be written to; "
      "mount its volume into the GPU workers too",
      {{"folder", folder}});
  return "";
}

std::unique_ptr<TrainingCurves> MakeCurves(const process::RankSession& session,
                                           const std::string& output_folder, base::Clock& clock) {
  if (output_folder.empty()) return nullptr;
  const api::Training& training = session.job().spec.training;
  const job::StepPlan& plan = session.schedule().training();
  return std::make_unique<TrainingCurves>(
      absl::StrCat(output_folder, "/", kCurvesFolder),
      LearningRateOptions{.schedule = training.schedule,
                          .learning_rate = training.optimizer.learning_rate,
                          .world_size = session.world_size(),
                          .total_steps = plan.total_steps(),
                          .steps_per_epoch = plan.steps_per_epoch()},
      clock);
}

absl::Status Train(process::RankSession& session, const TrainerProcessOptions& options,
                   base::Clock& clock) {
  const feed::SampleProducer& producer = session.producer();
  const source::Dataset& dataset = producer.dataset(job::Split::kTrain);
  const pipeline::Pipeline& pipeline = producer.pipeline(job::Split::kTrain);
  const std::unique_ptr<CopiedFolder> copied = FolderForStore(session, options);
  const std::string output_folder =
      copied != nullptr ? copied->path() : OutputFolder(session, options);
  if (copied != nullptr) HETERO_RETURN_IF_ERROR(copied->Check());
  const std::unique_ptr<TrainingCurves> curves = MakeCurves(session, output_folder, clock);
  SessionObserver observer(session, options, curves.get());
  SessionBatches batches(session);
  SessionGenerations generations(session, options.session, clock);
  session.report().OnStart();
  ModelFiles model_files;
  HETERO_ASSIGN_OR_RETURN(const api::HeteroTrainingJob job, model_files.Fetch(session.job()));
  std::function<absl::Status()> deliver;
  if (copied != nullptr) {
    deliver = [&copied, &session] { return copied->Copy(session.stop_token()); };
  }
  return model_files.OfObjects(RunTrainer(
      {.job = job,
       .rank = session.rank(),
       .world_size = session.world_size(),
       .run = session.run(),
       .member = session.name(),
       .threads = options.threads > 0 ? options.threads : process::CoresFromEnvironment(),
       .classes = dataset.classes(),
       .samples = dataset.size(),
       .dataset_fingerprint = dataset.fingerprint(),
       .dataset_versions = dataset.versions(),
       .input = pipeline.output(),
       .conversion = pipeline.conversion(),
       .ceiling_probe_steps = options.ceiling_probe_steps,
       .gpu = options.gpu,
       .output_folder = output_folder,
       .deliver = deliver},
      session.schedule(), batches, generations, observer, clock,
      {.stop = session.stop_token(),
       .leave = session.leave_token(),
       .save = &session.checkpoint_wish()}));
}

}  // namespace

absl::Status RunTrainerProcess(TrainerProcessOptions options, base::Clock& clock,
                               std::stop_token stop) {
  options.session.leaves_alone = true;
  HETERO_ASSIGN_OR_RETURN(std::unique_ptr<process::RankSession> session,
                          process::RankSession::Join(options.session, clock, std::move(stop)));
  return session->Finish(Train(*session, options, clock));
}

}  // namespace hetero::train
