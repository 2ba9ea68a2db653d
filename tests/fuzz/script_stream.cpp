#include "runtime/agent/script_stream.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/manifest.h"
#include "runtime/agent/stream_protocol.h"
#include "runtime/agent/stream_state.h"
#include "tests/fuzz/fuzz.h"

// What a script says to its agent: the bytes of the socket, in pieces. The first byte is how many
// are read at a time.
namespace hetero::agent {
namespace {

constexpr char kJob[] = R"(
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: fuzz}
spec:
  dataset:
    uri: "synthetic://"
    samples: 7
    classes: 2
    image: {height: 2, width: 2, channels: 1}
    validation: {uri: "synthetic://", samples: 3, classes: 2, image: {height: 2, width: 2, channels: 1}}
  training: {script: {command: [x]}, epochs: 2, batchSizePerWorker: 2}
  roles:
  - {name: head, type: Head}
  - {name: cpu, type: CPUWorker}
  - {name: gpu, type: GPUWorker}
)";

// The batches of a schedule, made when they are asked for.
class Batches : public feed::BatchStream {
 public:
  Batches(const job::Schedule& schedule, const feed::SampleProducer& producer, int64_t first,
          feed::SlabSource slabs)
      : schedule_(schedule), producer_(producer), next_(first), slabs_(std::move(slabs)) {}

  absl::StatusOr<std::unique_ptr<feed::Batch>> Next(std::stop_token) override {
    if (next_ == schedule_.size()) return absl::OutOfRangeError("no more");
    const job::PlannedBatch planned = schedule_.At(next_++);
    auto batch = std::make_unique<feed::Batch>(producer_.Allocate({.split = planned.split,
                                                                   .epoch = planned.epoch,
                                                                   .step = planned.step,
                                                                   .slots = planned.slots},
                                                                  slabs_));
    for (int64_t i = 0; i < batch->count(); ++i) {
      std::optional<feed::BadSample> bad;
      fuzz::Require(producer_.Produce(batch.get(), i, &bad).ok(), "a sample is not made");
    }
    return batch;
  }
  feed::StreamStats stats() const override { return {}; }

 private:
  const job::Schedule& schedule_;
  const feed::SampleProducer& producer_;
  int64_t next_;
  const feed::SlabSource slabs_;
};

class Feed : public RankFeed {
 public:
  Feed()
      : job_(api::ParseManifest(kJob).job),
        producer_(*feed::SampleProducer::Create(job_)),
        schedule_({.training = {.samples = 7, .batch_size_per_worker = 2, .epochs = 2}}, 0),
        validation_({.training = {.samples = 7, .batch_size_per_worker = 2, .max_steps = 1},
                     .validation_samples = 3},
                    0) {}

  const api::HeteroTrainingJob& job() const override { return job_; }
  int32_t rank() const override { return 0; }
  const job::Schedule& schedule() const override { return schedule_; }
  const feed::SampleProducer& producer() const override { return *producer_; }
  int64_t byte_budget() const override { return 4096; }
  void UseMemory(feed::SlabSource slabs, bool) override { slabs_ = std::move(slabs); }
  feed::BatchStream& TrainingFrom(int64_t step) override {
    fuzz::Require(step >= 0 && step < 8, "a stream begins where there is no step");
    training_ = std::make_unique<Batches>(schedule_, *producer_, step, slabs_);
    return *training_;
  }
  Validation OpenValidation() override {
    return {.batches = validation_.evaluation_batches(),
            .stream = std::make_unique<Batches>(validation_, *producer_, 1, slabs_)};
  }
  void OnPosition(const Position& position) override {
    fuzz::Require(position.step >= 0 && position.step <= 8, "a position outside the job");
  }
  void OnBatch(const feed::Batch&) override {}
  void OnStep(int64_t step, int64_t, double) override {
    fuzz::Require(step > 0 && step <= 8, "a step outside the job");
  }
  void OnReported(const std::map<std::string, double>& values, int64_t step) override {
    fuzz::Require(values.size() <= kMaxReportedValues, "too much is reported");
    fuzz::Require(step >= 0 && step <= 8, "something is reported of a step outside the job");
  }
  std::stop_token stop_token() const override { return {}; }

 private:
  const api::HeteroTrainingJob job_;
  const std::unique_ptr<feed::SampleProducer> producer_;
  const job::Schedule schedule_, validation_;
  feed::SlabSource slabs_;
  std::unique_ptr<Batches> training_;
};

class Agreeable : public Coordinator {
 public:
  absl::Status AgreePosition(const Position&, const std::stop_token&, base::Duration) override {
    return absl::OkStatus();
  }
  bool MayGoOn(int64_t step, const std::stop_token&) override { return step < 6; }
  bool CheckpointDue(int64_t step, const std::stop_token&) override {
    fuzz::Require(step > 0 && step <= 8, "a checkpoint outside the job");
    return step % 2 == 0;
  }
  void TellDigest(int64_t step, const job::StreamDigest&) override {
    fuzz::Require(step > 0 && step <= 8, "a digest outside the job");
  }
  std::optional<job::StreamDigest> JobDigestAt(int64_t step, const std::stop_token&,
                                               base::Duration) override {
    return job::StreamDigest(7, static_cast<uint64_t>(step));
  }
};

// What a script may rely on, whatever it has said.
class Script {
 public:
  explicit Script(std::shared_ptr<BatchArena> arena) : arena_(std::move(arena)) {}

  void Check(const Request& question, const ScriptStream::Reply& reply) {
    fuzz::Require(reply.message.is_object(), "an answer is no object");
    const std::string type = reply.message.value("type", "");
    fuzz::Require(!type.empty(), "an answer has no type");
    fuzz::Require(EncodeMessage(reply.message).size() <= kMaxAnswerBytes, "an answer is too long");
    if (type == "error") return;
    fuzz::Require(greeted_ || type == "welcome", "somebody is answered who said no hello");
    if (type == "welcome") greeted_ = true;
    if (type == "begun") next_ = reply.message["step"];
    if (type != "batch") return;
    const auto slot = reply.message["slot"].get<int64_t>();
    fuzz::Require(slot >= 0 && slot < arena_->slots(), "a batch lies outside the arena");
    fuzz::Require(held_.insert(slot).second, "a slot that the script holds is given again");
    fuzz::Require(static_cast<int64_t>(held_.size()) <= arena_->may_hold(), "too much is held");
    for (const auto& field : reply.message["fields"]) {
      const int64_t end = field["offset"].get<int64_t>() + field["bytes"].get<int64_t>();
      fuzz::Require(end <= arena_->slot_bytes(), "a field lies outside its slot");
    }
    const bool validation = std::get<NextRequest>(question).validation;
    if (validation) return;
    fuzz::Require(next_.has_value(), "a batch comes before the stream has begun");
    fuzz::Require(reply.message["step"] == *next_, "a step is left out or comes again");
    ++*next_;
  }
  void Free(int64_t slot, bool freed) {
    fuzz::Require((held_.erase(slot) == 1) == freed, "a slot is freed that is not held");
  }

 private:
  const std::shared_ptr<BatchArena> arena_;
  std::set<int64_t> held_;
  bool greeted_ = false;
  std::optional<int64_t> next_;
};

// A state that was taken comes back as it was.
void CheckState(const Request& request, Feed& feed, const std::string& fingerprint) {
  const auto* begin = std::get_if<BeginRequest>(&request);
  if (begin == nullptr || !begin->state.has_value()) return;
  const nlohmann::json again = {{"type", "begin"}, {"position", ToJson(*begin->state)}};
  const absl::StatusOr<Request> parsed = ParseRequest(
      again.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace));
  fuzz::Require(parsed.ok(), "a state is not taken the second time");
  fuzz::Require(std::get<BeginRequest>(*parsed).state == begin->state,
                "a state comes back changed");
  const job::StepPlan& plan = feed.schedule().training();
  const absl::StatusOr<Position> position = PositionOf(*begin->state, fingerprint, 0, plan);
  if (!position.ok()) return;
  fuzz::Require(StateAt(*position, fingerprint, 0, plan).slot == begin->state->slot,
                "a state is accepted that is not of its step");
}

void Speak(std::string_view bytes, size_t piece) {
  static Feed feed;
  static Agreeable coordinator;
  static const std::shared_ptr<BatchArena> arena = [] {
    const SampleLayout layout = {.shape = {2, 2, 1}};
    return *BatchArena::Create({.slot_bytes = SlotBytes(2, layout),
                                .may_wait = 2,
                                .may_hold = 3,
                                .image_bytes = ImageBytes(2, layout)});
  }();
  static const std::string fingerprint = "dataset:0 shuffle:Full last-batch:Keep pipeline:0";
  feed.UseMemory([](int64_t size) { return arena->Allocate(size); }, /*moves_shared=*/false);
  int64_t saved = 0;
  StreamServer::Options options;
  options.held_deadline = options.held_warning = base::Duration::zero();
  {
    ScriptStream stream({.options = options,
                         .feed = feed,
                         .coordinator = coordinator,
                         .arena = arena,
                         .clock = base::Clock::Real(),
                         .fingerprint = fingerprint,
                         .saved_step = &saved});
    Script script(arena);
    MessageReader reader(kMaxRequestBytes);
    while (!bytes.empty()) {
      reader.Append(bytes.substr(0, piece));
      bytes.remove_prefix(std::min(piece, bytes.size()));
      while (true) {
        const absl::StatusOr<std::optional<std::string>> text = reader.Next();
        if (!text.ok()) return;
        if (!text->has_value()) break;
        const absl::StatusOr<Request> question = ParseRequest(**text);
        if (!question.ok()) {
          if (stream.Refuse(question.status()).closes) return;
          continue;
        }
        CheckState(*question, feed, fingerprint);
        if (const auto* freed = std::get_if<FreeRequest>(&*question)) {
          script.Free(freed->slot, stream.Free(freed->slot).ok());
        } else if (const auto* report = std::get_if<ReportRequest>(&*question)) {
          fuzz::Require(stream.Report(*report).ok(), "a report is refused");
        } else {
          const ScriptStream::Reply reply = stream.Answer(*question, {});
          script.Check(*question, reply);
          if (reply.closes) return;
        }
      }
      fuzz::Require(reader.waiting() < kMaxRequestBytes + 4, "more waits than a message");
    }
  }
  fuzz::Require(arena->held() == 0, "slots are held by nobody");
}

}  // namespace
}  // namespace hetero::agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hetero::fuzz::Silence();
  if (size == 0) return 0;
  hetero::agent::Speak(hetero::fuzz::TextOf(data + 1, size - 1), 1 + size_t{data[0]});
  return 0;
}
