#include "runtime/agent/script_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/views.h"
#include "base/log.h"
#include "runtime/agent/stream_state.h"
#include "runtime/feed/digest.h"

namespace hetero::agent {
namespace {

std::string NameOfStep(int64_t step) { return absl::StrCat("step ", step); }

std::string TextOf(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

}  // namespace

ScriptStream::ScriptStream(Context context)
    : context_(std::move(context)),
      handover_({.arena = context_.arena,
                 .training = LayoutOf(context_.feed.producer(), job::Split::kTrain),
                 .validation = LayoutOf(context_.feed.producer(), job::Split::kValidation)}),
      held_({.most = context_.arena->may_hold(),
             .warning = context_.options.held_warning,
             .deadline = context_.options.held_deadline,
             .rank = context_.feed.rank()},
            context_.clock) {}

int64_t ScriptStream::accumulation() const {
  return std::max(1, context_.feed.job().spec.training.gradient_accumulation_steps);
}

ScriptStream::Reply ScriptStream::Answer(const Request& request, const std::stop_token& stop) {
  if (!greeted_ && !std::holds_alternative<HelloRequest>(request)) {
    return Refuse(absl::InvalidArgumentError("a script says hello first"));
  }
  return std::visit([&](const auto& question) { return Handle(question, stop); }, request);
}

ScriptStream::Reply ScriptStream::Refuse(const absl::Status& why) {
  if (absl::IsFailedPrecondition(why)) return Misuse(TextOf(why));
  NoteMisuse(why);
  return {.message = ErrorAnswer(ErrorKind::kProtocol, TextOf(why)), .closes = true};
}

ScriptStream::Reply ScriptStream::Misuse(const std::string& what) {
  NoteMisuse(absl::FailedPreconditionError(what));
  return {.message = ErrorAnswer(ErrorKind::kMisuse, what)};
}

ScriptStream::Reply ScriptStream::Stopped() {
  const base::MutexLock lock(mutex_);
  standing_.stopped = true;
  return {.message = ErrorAnswer(ErrorKind::kStopped,
                                 absl::StrCat("the job stops, or starts its scripts again; ", step_,
                                              " steps were given out here"))};
}

ScriptStream::Reply ScriptStream::Failed(const absl::Status& why) {
  const base::MutexLock lock(mutex_);
  if (standing_.failure.ok()) standing_.failure = why;
  return {.message = ErrorAnswer(ErrorKind::kFailed, TextOf(why))};
}

void ScriptStream::NoteMisuse(const absl::Status& misuse) {
  const base::MutexLock lock(mutex_);
  if (standing_.misuse.ok()) standing_.misuse = misuse;
}

StreamServer::Standing ScriptStream::standing() const {
  const base::MutexLock lock(mutex_);
  return standing_;
}

absl::Status ScriptStream::Report(const ReportRequest& report) {
  int64_t step = 0;
  {
    const base::MutexLock lock(mutex_);
    step = standing_.steps_given;
  }
  if (report.step.has_value()) step = std::clamp<int64_t>(*report.step, 0, step);
  context_.feed.OnReported(report.values, step);
  return absl::OkStatus();
}

ScriptStream::Reply ScriptStream::Handle(const HelloRequest& hello, const std::stop_token&) {
  if (greeted_) {
    return Refuse(absl::InvalidArgumentError("hello was said before"));
  }
  if (hello.protocol != kProtocolVersion) {
    const std::string what = absl::StrCat(
        "the Python package hetero ", hello.package, " speaks protocol ", hello.protocol,
        ", this runtime speaks ", kProtocolVersion, ": use the package that came with the runtime");
    return Refuse(absl::InvalidArgumentError(what));
  }
  greeted_ = true;
  one_file_ = hello.one_file;
  {
    const base::MutexLock lock(mutex_);
    standing_.said_hello = true;
  }
  const RankFeed& feed = context_.feed;
  log::Info("a script has connected", {{"rank", feed.rank()},
                                       {"pid", hello.pid},
                                       {"package", hello.package},
                                       {"python", hello.python},
                                       {"numpy", hello.numpy},
                                       {"torch", hello.torch}});
  const api::Training& training = feed.job().spec.training;
  const feed::SampleProducer& producer = feed.producer();
  const source::Dataset& samples = producer.dataset(job::Split::kTrain);
  const pipeline::Pipeline& pipeline = producer.pipeline(job::Split::kTrain);
  const bool converts = feed::IsConverted(feed.job().spec.pipeline, api::kImageView);
  const WelcomeAnswer welcome{
      .rank = feed.rank(),
      .world_size = feed.job().spec.world_size(),
      .local_rank = context_.options.local_rank,
      .restart_count = context_.restart_count,
      .fingerprint = context_.fingerprint,
      .seed = training.seed,
      .batch_size = training.batch_size_per_worker,
      .accumulation = accumulation(),
      .epochs = plan().total_epochs(),
      .total_steps = plan().total_steps(),
      .steps_per_epoch = plan().steps_per_epoch(),
      .samples = samples.size(),
      .classes = samples.classes(),
      .image = pipeline.output(),
      .conversion = converts ? &pipeline.conversion() : nullptr,
      .views = producer.view_groups().conversions(),
      .fields = FieldsOf(LayoutOf(producer, job::Split::kTrain)),
      .validation_samples =
          producer.has_validation() ? producer.dataset(job::Split::kValidation).size() : 0,
      .checkpoint = training.checkpoint,
      .slots = context_.arena->slots(),
      .slot_bytes = context_.arena->slot_bytes(),
      .may_hold = context_.arena->may_hold()};
  return {.message = ToJson(welcome), .passes = context_.arena};
}

ScriptStream::Reply ScriptStream::Handle(const BeginRequest& begin, const std::stop_token& stop) {
  if (position_.has_value()) {
    return Misuse(absl::StrCat("the stream has begun at step ", position_->step,
                               "; a state is loaded before the first batch"));
  }
  Position position;
  if (begin.state.has_value()) {
    const absl::StatusOr<Position> found = PositionOf(
        *begin.state, context_.fingerprint, context_.feed.job().spec.training.seed, plan());
    if (!found.ok()) return Misuse(TextOf(found.status()));
    position = *found;
  }
  if (position.step == 0 && *context_.saved_step > 0) {
    log::Warning(
        "the script starts again at step 0, though it has saved a state: load it with "
        "stream.load_state_dict() before the first batch",
        {{"rank", context_.feed.rank()}, {"savedStep", *context_.saved_step}});
  }
  {
    const base::MutexLock lock(mutex_);
    standing_.asked = true;
  }
  if (stop.stop_requested()) return Stopped();
  const absl::Status agreed =
      context_.coordinator.AgreePosition(position, stop, context_.options.startup_deadline);
  if (absl::IsAborted(agreed) || absl::IsCancelled(agreed)) return Stopped();
  if (absl::IsFailedPrecondition(agreed)) {
    return Misuse(TextOf(agreed));
  }
  if (absl::IsDeadlineExceeded(agreed)) {
    return {.message = ErrorAnswer(ErrorKind::kTimeout, TextOf(agreed))};
  }
  if (!agreed.ok()) return Failed(agreed);
  position_ = position;
  step_ = position.step;
  context_.feed.OnPosition(position);
  {
    const base::MutexLock lock(mutex_);
    standing_.begun = true;
    standing_.misuse = absl::OkStatus();  // a state that did not fit; this one does
    standing_.steps_given = step_;
  }
  const StreamState state =
      StateAt(position, context_.fingerprint, context_.feed.job().spec.training.seed, plan());
  return {.message = {{"type", "begun"},
                      {"step", step_},
                      {"epoch", state.epoch},
                      {"step_in_epoch", step_ % plan().steps_per_epoch()}}};
}

ScriptStream::Reply ScriptStream::Handle(const NextRequest& next, const std::stop_token& stop) {
  FinishStep();
  if (stop.stop_requested()) return Stopped();
  return next.validation ? NextOfValidation(stop) : NextOfTraining(stop);
}

ScriptStream::Reply ScriptStream::NextOfTraining(const std::stop_token& stop) {
  if (!position_.has_value()) {
    return Misuse("a batch was asked for before the stream has begun");
  }
  if (ended_) {
    return Misuse(absl::StrCat("the stream has ended with step ", step_,
                               " and has no more batches; leave the loop"));
  }
  if (step_ == plan().total_steps()) {
    ended_ = true;
    const base::MutexLock lock(mutex_);
    standing_.reached_end = true;
    return {.message = {{"type", "end"}}};
  }
  if (micro_ == 0) {
    if (std::optional<Reply> instead = FetchStep(stop)) return *std::move(instead);
  } else if (std::optional<Reply> instead = WaitForSlot(stop)) {
    return *std::move(instead);
  }
  const int64_t parts = accumulation();
  const BatchPart part = PartOf(batch_->count(), parts, micro_);
  const job::Step step = plan().At(step_);
  BatchAnswer answer{.step = step_,
                     .epoch = step.epoch,
                     .step_in_epoch = step.step_in_epoch,
                     .first_slot = batch_->ticket.slots.first + part.first,
                     .count = part.count,
                     .micro = micro_};
  answer.last_of_epoch =
      (plan().IsLastOfEpoch(step_) || step_ + 1 == plan().total_steps()) && micro_ + 1 == parts;
  answer.weight = 0;
  if (part.count > 0) {
    answer.weight = plan().LossScale(step_, context_.feed.rank()) *
                    static_cast<double>(part.count * parts) / static_cast<double>(batch_->count());
  }
  BatchHandover::Pictures pictures = BatchHandover::Pictures::kStay;
  if (one_file_ || context_.arena_alone) pictures = BatchHandover::Pictures::kIntoArena;
  if (parts > 1) pictures = BatchHandover::Pictures::kCopyPart;
  Reply reply = GivePart(std::move(answer), part, pictures, batch_.get(), NameOfStep(step_));
  if (++micro_ < parts) return reply;
  given_samples_ = batch_->count();
  batch_.reset();
  micro_ = 0;
  ++step_;
  given_at_ = context_.clock.Now();
  context_.coordinator.TellDigest(step_, own_);
  const base::MutexLock lock(mutex_);
  standing_.steps_given = step_;
  return reply;
}

std::optional<ScriptStream::Reply> ScriptStream::FetchStep(const std::stop_token& stop) {
  if (!context_.coordinator.MayGoOn(step_, stop) || stop.stop_requested()) return Stopped();
  if (std::optional<Reply> instead = WaitForSlot(stop)) return instead;
  if (training_ == nullptr) training_ = &context_.feed.TrainingFrom(step_);
  absl::StatusOr<std::unique_ptr<feed::Batch>> batch = training_->Next(stop);
  if (absl::IsCancelled(batch.status())) return Stopped();
  if (!batch.ok()) return Failed(batch.status());
  batch_ = *std::move(batch);
  context_.feed.OnBatch(*batch_);
  feed::AddToDigest(static_cast<uint64_t>(context_.feed.job().spec.training.seed), *batch_, &own_);
  return std::nullopt;
}

ScriptStream::Reply ScriptStream::NextOfValidation(const std::stop_token& stop) {
  if (!validating_) {
    return Misuse("a validation batch was asked for outside a pass; use stream.validation()");
  }
  if (validated_ == validation_.batches) {
    validating_ = false;
    validation_ = {};
    return {.message = {{"type", "end"}}};
  }
  if (std::optional<Reply> instead = WaitForSlot(stop)) return *std::move(instead);
  absl::StatusOr<std::unique_ptr<feed::Batch>> batch = validation_.stream->Next(stop);
  if (absl::IsCancelled(batch.status())) return Stopped();
  if (!batch.ok()) return Failed(batch.status());
  context_.feed.OnBatch(**batch);
  const api::HeteroTrainingJob& job = context_.feed.job();
  const int64_t ranks = job.spec.world_size();
  const int64_t full = ranks * job.spec.training.batch_size_per_worker;
  const int64_t all = std::min(
      full, context_.feed.producer().dataset(job::Split::kValidation).size() - validated_ * full);
  const BatchPart part{.count = (*batch)->count()};
  BatchAnswer answer{.step = validated_,
                     .step_in_epoch = validated_,
                     .last_of_epoch = validated_ + 1 == validation_.batches,
                     .weight = static_cast<double>(ranks * part.count) / static_cast<double>(all),
                     .first_slot = (*batch)->ticket.slots.first,
                     .count = part.count};
  const std::string what = absl::StrCat("validation batch ", validated_);
  ++validated_;
  // A pass has memory of its own with its workers, which one batch that is kept would keep whole.
  return GivePart(std::move(answer), part, BatchHandover::Pictures::kIntoArena, batch->get(), what);
}

std::optional<ScriptStream::Reply> ScriptStream::WaitForSlot(const std::stop_token& stop) {
  const absl::Status room = held_.WaitForRoom(stop);
  if (room.ok()) return std::nullopt;
  if (absl::IsCancelled(room)) return Stopped();
  return Reply{.message = ErrorAnswer(ErrorKind::kTimeout, TextOf(room))};
}

ScriptStream::Reply ScriptStream::GivePart(BatchAnswer answer, const BatchPart& part,
                                           BatchHandover::Pictures pictures, feed::Batch* batch,
                                           const std::string& what) {
  BatchHandover::Handed handed = handover_.Hand(part, pictures, batch, &answer);
  Reply reply = {.message = ToJson(answer), .passes = std::move(handed.file)};
  held_.Hold(answer.slot, std::move(handed.slabs), what);
  const base::MutexLock lock(mutex_);
  standing_.was_given = true;
  return reply;
}

void ScriptStream::FinishStep() {
  if (!given_at_.has_value()) return;
  const base::Instant now = context_.clock.Now();
  context_.feed.OnStep(step_, given_samples_, base::ToSeconds(now - *given_at_));
  given_at_.reset();
}

ScriptStream::Reply ScriptStream::Handle(const CheckpointRequest& request,
                                         const std::stop_token& stop) {
  FinishStep();
  const int64_t step = request.step.value_or(step_);
  const bool at_end = request.step.has_value() || micro_ == 0;
  const bool asks = position_.has_value() && step > position_->step && step <= step_ && at_end;
  const bool save = asks && context_.coordinator.CheckpointDue(step, stop);
  return {.message = {{"type", "checkpoint"}, {"save", save}}};
}

ScriptStream::Reply ScriptStream::Handle(const StateRequest& request, const std::stop_token& stop) {
  if (!position_.has_value()) return Misuse("there is no state before the stream has begun");
  const int64_t step = request.step.value_or(step_);
  if (step < position_->step || step > step_) {
    return Misuse(absl::StrCat("a state after step ", step, " was asked for, and steps ",
                               position_->step, " to ", step_, " were given"));
  }
  if (micro_ > 0 && !request.step.has_value()) {
    return Misuse(absl::StrCat("a state can be taken at the end of a step: ", micro_, " of ",
                               accumulation(), " batches of step ", step_,
                               " were given (gradientAccumulationSteps)"));
  }
  FinishStep();
  Position here{.step = step, .digest = position_->digest, .proven = position_->proven};
  if (step > position_->step && position_->proven) {
    const std::optional<job::StreamDigest> digest =
        context_.coordinator.JobDigestAt(step, stop, context_.options.digest_deadline);
    here.proven = digest.has_value();
    here.digest = digest.value_or(job::StreamDigest());
  }
  *context_.saved_step = std::max(*context_.saved_step, step);
  return {.message = {{"type", "state"},
                      {"state", ToJson(StateAt(here, context_.fingerprint,
                                               context_.feed.job().spec.training.seed, plan()))}}};
}

ScriptStream::Reply ScriptStream::Handle(const ValidationRequest&, const std::stop_token& stop) {
  FinishStep();
  if (stop.stop_requested()) return Stopped();
  {
    const base::MutexLock lock(mutex_);
    standing_.asked = true;
  }
  validation_ = {};
  validation_ = context_.feed.OpenValidation();
  validated_ = 0;
  validating_ = true;
  return {.message = {{"type", "validation_begun"}, {"batches", validation_.batches}}};
}

ScriptStream::Reply ScriptStream::Handle(const ByeRequest&, const std::stop_token&) {
  FinishStep();
  const base::MutexLock lock(mutex_);
  standing_.bye = true;
  return {.message = {{"type", "bye"}}, .closes = true};
}

// Both are taken before they come here.
ScriptStream::Reply ScriptStream::Handle(const FreeRequest&, const std::stop_token&) {
  return Refuse(absl::InvalidArgumentError("free has no answer"));
}

ScriptStream::Reply ScriptStream::Handle(const ReportRequest&, const std::stop_token&) {
  return Refuse(absl::InvalidArgumentError("report has no answer"));
}

}  // namespace hetero::agent
