#include "runtime/feed/sample_producer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "api/views.h"
#include "base/process_usage.h"
#include "base/status_macros.h"
#include "runtime/feed/kept_sample.h"
#include "runtime/feed/pixel_environment.h"
#include "runtime/feed/read_time.h"
#include "runtime/feed/sample_label.h"
#include "runtime/feed/split_agreement.h"
#include "runtime/feed/thrown.h"
#include "runtime/job/permutation.h"
#include "runtime/job/replacement.h"

namespace hetero::feed {
namespace {

using std::chrono::milliseconds;

constexpr base::Duration kRetryPauses[] = {milliseconds(20), milliseconds(100), milliseconds(500)};
constexpr int64_t kMaxBatchBytes = std::numeric_limits<int32_t>::max() - (int64_t{64} << 20);

// The validation set has one order, whatever the epoch.
int64_t EpochOf(const Ticket& ticket) {
  return ticket.split == job::Split::kTrain ? ticket.epoch : 0;
}

KeptSample& StoredSample() {
  static thread_local KeptSample kept;
  return kept;
}

api::Label LabelOf(const api::HeteroTrainingJob& job) {
  return job.spec.dataset.label.value_or(api::Label());
}

}  // namespace

absl::StatusOr<std::unique_ptr<SampleProducer>> SampleProducer::Create(
    const api::HeteroTrainingJob& job, base::Clock& clock,
    const pipeline::PythonFunctions* python) {
  const auto seed = static_cast<uint64_t>(job.spec.training.seed);
  auto train = source::OpenDataset(job.spec.dataset, job::Split::kTrain, seed, LabelOf(job),
                                   job.spec.storage);
  if (!train.ok()) return train.status();
  std::unique_ptr<source::Dataset> validation;
  if (job.spec.dataset.validation.has_value()) {
    auto opened = source::OpenDataset(*job.spec.dataset.validation, job::Split::kValidation, seed,
                                      LabelOf(job), job.spec.storage);
    if (!opened.ok()) return opened.status();
    validation = *std::move(opened);
  }
  return Create(job, *std::move(train), std::move(validation), clock, python);
}

absl::StatusOr<std::unique_ptr<SampleProducer>> SampleProducer::Create(
    const api::HeteroTrainingJob& job, std::unique_ptr<source::Dataset> train,
    std::unique_ptr<source::Dataset> validation, base::Clock& clock,
    const pipeline::PythonFunctions* python) {
  const std::vector<api::OperatorSpec>& operators = job.spec.pipeline;
  HETERO_ASSIGN_OR_RETURN(ViewGroups groups, ViewGroups::Create(job.spec, *train, python));
  auto pipeline = api::HasSeveralViews(job.spec)
                      ? CutPipeline::CreateUncut(operators, train->image(), job::Split::kTrain,
                                                 api::ImageViews(job.spec), python)
                      : CutPipeline::Create(operators, train->image(), job::Split::kTrain,
                                            base::Clock::Real(), python);
  if (!pipeline.ok()) return pipeline.status();

  std::unique_ptr<SampleProducer> producer(new SampleProducer(clock));
  producer->seed_ = static_cast<uint64_t>(job.spec.training.seed);
  producer->shuffle_ = job.spec.dataset.shuffle;
  producer->labels_are_classes_ = LabelOf(job).type == api::LabelType::kClass;
  HETERO_ASSIGN_OR_RETURN(producer->masks_, SampleMasks::Create(job, *train, validation.get()));
  producer->fields_ = producer->masks_.With(groups.With(LabelOf(job)));
  producer->validation_fields_ = producer->masks_.With(job::FieldsOf(LabelOf(job)));
  producer->groups_ = std::move(groups);
  HETERO_ASSIGN_OR_RETURN(producer->environment_, PixelEnvironment(job.spec.pipeline));
  producer->train_ = std::move(train);
  producer->train_pipeline_ = *std::move(pipeline);
  if (validation != nullptr) {
    pipeline = CutPipeline::Create(operators, validation->image(), job::Split::kValidation,
                                   base::Clock::Real(), python);
    if (!pipeline.ok()) return pipeline.status();
    if (producer->labels_are_classes_) {
      HETERO_RETURN_IF_ERROR(CheckSplitsAgree(*producer->train_, *validation));
    }
    if ((*pipeline)->whole().output() != producer->train_pipeline_->whole().output()) {
      return absl::InvalidArgumentError(
          "spec.dataset.validation: its pictures leave the pipeline in another shape than the "
          "training set's; fix the size with Resize or a crop");
    }
    producer->validation_ = std::move(validation);
    producer->validation_pipeline_ = *std::move(pipeline);
  }
  if (!producer->masks_.empty()) {
    // A mask is moved where the sample is read; a trainer gets both done.
    producer->train_pipeline_->KeepWhole();
    if (producer->validation_pipeline_ != nullptr) producer->validation_pipeline_->KeepWhole();
  }
  if (producer->train_->is_remote() ||
      (producer->validation_ != nullptr && producer->validation_->is_remote())) {
    ReadAhead::Options options;
    // The container's memory is for batches.
    if (const std::optional<int64_t> memory = base::CgroupMemoryLimit()) {
      options.most_bytes = std::min(options.most_bytes, *memory / 8);
    }
    producer->ahead_ = std::make_unique<ReadAhead>(
        options,
        [one = producer.get()](job::Split split, absl::Span<const int64_t> ids,
                               absl::Span<source::RawSample> samples) {
          return one->dataset(split).ReadRun(ids, samples);
        },
        clock);
  }
  return producer;
}

const source::Dataset& SampleProducer::dataset(job::Split split) const {
  return split == job::Split::kTrain ? *train_ : *validation_;
}

const CutPipeline& SampleProducer::cut(job::Split split) const {
  return split == job::Split::kTrain ? *train_pipeline_ : *validation_pipeline_;
}

std::vector<pipeline::OperatorCost> SampleProducer::costs() const {
  std::vector<pipeline::OperatorCost> costs = train_pipeline_->costs();
  groups_.AddCosts(costs);
  return costs;
}

int64_t SampleProducer::fields_bytes(job::Split split) const {
  const int64_t views = split == job::Split::kTrain ? groups_.bytes() : 0;
  return views + masks_.bytes(split);
}

int64_t SampleProducer::sample_bytes() const {
  const auto bytes_of = [this](job::Split split) {
    return cut(split).whole().output_bytes() + fields_bytes(split);
  };
  const int64_t train = bytes_of(job::Split::kTrain);
  return has_validation() ? std::max(train, bytes_of(job::Split::kValidation)) : train;
}

int64_t SampleProducer::batch_bytes(const Ticket& ticket) const {
  const pipeline::Pipeline& pipe = cut(ticket.split).front(ticket.left_to_trainer);
  return ticket.slots.count * (pipe.output_bytes() + fields_bytes(ticket.split));
}

absl::Status SampleProducer::Check(const Ticket& ticket) const {
  if (ticket.split == job::Split::kValidation && !has_validation()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ticket ", ticket.id, " asks for validation samples, but this job has no validation set"));
  }
  const job::SlotRange& slots = ticket.slots;
  const int64_t size = dataset(ticket.split).size();
  if (slots.first < 0 || slots.count < 0 || slots.first > size ||
      slots.count > size - slots.first || ticket.epoch < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ticket ", ticket.id, " asks for epoch ", ticket.epoch, " slots [", slots.first, ", +",
        slots.count, ") of ", size, " samples: do trainer and worker run the same job?"));
  }
  if (!cut(ticket.split).CanLeave(ticket.left_to_trainer)) {
    return absl::InvalidArgumentError(
        absl::StrCat("ticket ", ticket.id, " leaves ", ticket.left_to_trainer,
                     " operators to the trainer, where the pipeline cannot be cut"));
  }
  const int64_t bytes =
      cut(ticket.split).front(ticket.left_to_trainer).output_bytes() + fields_bytes(ticket.split);
  if (bytes > 0 && slots.count > kMaxBatchBytes / bytes) {
    return absl::InvalidArgumentError(absl::StrCat("ticket ", ticket.id, ": a batch of ",
                                                   slots.count, " samples of ", bytes,
                                                   " bytes is over 2 GiB; lower the batch size"));
  }
  return absl::OkStatus();
}

Batch SampleProducer::Allocate(const Ticket& ticket, const SlabSource& slabs) const {
  const auto count = static_cast<size_t>(ticket.slots.count);
  const pipeline::Pipeline& pipe = cut(ticket.split).front(ticket.left_to_trainer);
  Batch batch;
  batch.ticket = ticket;
  batch.shape = pipe.output();
  batch.views = pipe.views();
  batch.images = slabs(pipe.output_bytes() * ticket.slots.count);
  AllocateFields(fields(ticket.split), &batch);
  if (!batch.fields) batch.labels.resize(count);
  batch.sample_ids.resize(count);
  batch.crcs.resize(count);
  return batch;
}

job::Permutation SampleProducer::OrderOf(const Ticket& ticket) const {
  const bool training = ticket.split == job::Split::kTrain;
  return job::Permutation(seed_, EpochOf(ticket), dataset(ticket.split).size(),
                          training ? shuffle_ : api::Shuffle{api::ShuffleMode::kNone});
}

int64_t SampleProducer::ReplacementOf(const Ticket& ticket, int64_t slot, int32_t attempt) const {
  return job::Replacement(seed_, EpochOf(ticket), slot, attempt, dataset(ticket.split).size());
}

// By their place in the batch.
class SampleProducer::GatheredSamples : public BatchProducer::Gathered {
 public:
  struct Sample {
    int64_t id = 0;
    absl::Status status;
    source::RawSample sample;
  };
  void Add(int64_t index, Sample sample) { samples_.emplace(index, std::move(sample)); }
  // Null: it is not among them, or another sample takes its place.
  const Sample* Find(int64_t index, int64_t id) const {
    const auto found = samples_.find(index);
    return found != samples_.end() && found->second.id == id ? &found->second : nullptr;
  }

 private:
  std::map<int64_t, Sample> samples_;
};

absl::Status SampleProducer::Produce(Batch* batch, int64_t index,
                                     std::optional<BadSample>* bad) const {
  return ProduceBy({}, batch, index, bad);
}

absl::Status SampleProducer::ProduceGathered(const Gathered& gathered, Batch* batch, int64_t index,
                                             std::optional<BadSample>* bad) const {
  return ProduceBy({.alone = true, .gathered = static_cast<const GatheredSamples*>(&gathered)},
                   batch, index, bad);
}

absl::Status SampleProducer::ProduceNoted(Batch* batch, int64_t index,
                                          std::optional<BadSample>* bad,
                                          std::atomic<int64_t>* touched) const {
  return ProduceBy({.alone = true, .touched = touched}, batch, index, bad);
}

absl::Status SampleProducer::ProduceBy(const Reading& reading, Batch* batch, int64_t index,
                                       std::optional<BadSample>* bad) const {
  bad->reset();
  const Ticket& ticket = batch->ticket;
  const int64_t slot = ticket.slots.first + index;
  const int64_t id = OrderOf(ticket).At(slot);

  const auto produce_from = [&](int64_t sample) {
    if (const std::string* why = fatal_.Find(ticket.split, sample)) {
      return absl::DataLossError(*why);
    }
    if (reading.touched != nullptr) *reading.touched = sample;
    return ProduceFrom(reading, batch, index, sample);
  };
  const absl::Status first = produce_from(id);
  if (!absl::IsDataLoss(first)) return first;
  for (int32_t attempt = 1; attempt <= kMaxCandidates; ++attempt) {
    const int64_t candidate = ReplacementOf(ticket, slot, attempt);
    const absl::Status status = produce_from(candidate);
    if (absl::IsDataLoss(status)) continue;
    if (status.ok()) *bad = BadSample{slot, id, candidate, std::string(first.message())};
    return status;
  }
  return absl::DataLossError(absl::StrCat("slot ", slot, " of epoch ", ticket.epoch, ": sample ",
                                          id, " and ", kMaxCandidates,
                                          " replacements are all bad; first: ", first.message()));
}

std::unique_ptr<BatchProducer::Expected> SampleProducer::Expect(const Ticket& ticket) const {
  if (ahead_ == nullptr || !Check(ticket).ok() || !dataset(ticket.split).is_remote()) {
    return nullptr;
  }
  const job::Permutation order = OrderOf(ticket);
  std::vector<int64_t> ids;
  const auto most = static_cast<int64_t>(ReadAhead::kMostExpected);
  for (int64_t i = 0; i < std::min(ticket.slots.count, most); ++i) {
    const int64_t id = order.At(ticket.slots.first + i);
    if (fatal_.Find(ticket.split, id) == nullptr) ids.push_back(id);
  }
  return ahead_->Expect(ticket.split, dataset(ticket.split).RunsOf(ids));
}

std::unique_ptr<BatchProducer::Gathered> SampleProducer::Gather(const Ticket& ticket,
                                                                const std::stop_token& stop) const {
  if (!dataset(ticket.split).is_remote()) return nullptr;
  const job::Permutation order = OrderOf(ticket);
  auto gathered = std::make_unique<GatheredSamples>();
  int64_t bytes = 0;
  for (int64_t i = 0; i < ticket.slots.count && bytes < kMostGatheredBytes; ++i) {
    if (stop.stop_requested()) return nullptr;
    GatheredSamples::Sample one{.id = order.At(ticket.slots.first + i), .status = {}, .sample = {}};
    if (fatal_.Find(ticket.split, one.id) != nullptr) continue;
    one.status = ReadWithRetries(ticket.split, one.id, /*alone=*/false, &one.sample);
    bytes += static_cast<int64_t>(one.sample.bytes.capacity() + one.sample.fields.capacity() +
                                  one.sample.mask.capacity());
    gathered->Add(i, std::move(one));
  }
  return gathered;
}

absl::Status SampleProducer::ReadWithRetries(job::Split split, int64_t id, bool alone,
                                             source::RawSample* sample) const {
  const ReadTimer timer(clock_);
  std::optional<absl::Status> ahead;
  if (ahead_ != nullptr && !alone) ahead = ahead_->Take(split, id, sample);
  absl::Status status = ahead ? *std::move(ahead) : dataset(split).Read(id, sample);
  for (const base::Duration pause : kRetryPauses) {
    if (status.ok() || absl::IsDataLoss(status)) return status;
    clock_.SleepFor(pause);
    status = dataset(split).Read(id, sample);
  }
  // "Too many open files" and the like; kResourceExhausted is memory's alone here.
  if (absl::IsResourceExhausted(status)) return absl::UnavailableError(status.message());
  return status;
}

absl::Status SampleProducer::ProduceFrom(const Reading& reading, Batch* batch, int64_t index,
                                         int64_t id) const {
  absl::Status status;
  try {
    status = ReadAndTransform(reading, batch, index, id);
  } catch (...) {
    status = StatusOfThrown();
  }
  StoredSample().End();
  const std::string name = status.ok() ? "" : dataset(batch->ticket.split).Describe(id);
  if (absl::StartsWith(status.message(), name)) return status;
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

absl::Status SampleProducer::ReadAndTransform(const Reading& reading, Batch* batch, int64_t index,
                                              int64_t id) const {
  source::RawSample& buffer = StoredSample().sample();
  const Ticket& ticket = batch->ticket;
  const GatheredSamples::Sample* const gathered =
      reading.gathered == nullptr ? nullptr : reading.gathered->Find(index, id);
  HETERO_RETURN_IF_ERROR(gathered != nullptr
                             ? gathered->status
                             : ReadWithRetries(ticket.split, id, reading.alone, &buffer));
  const source::RawSample& sample = gathered != nullptr ? gathered->sample : buffer;
  // The model has as many outputs as the training set has classes, so that is validation's limit
  // too.
  if (labels_are_classes_ && (sample.label < 0 || sample.label >= train_->classes())) {
    return absl::DataLossError(
        absl::StrCat("label ", sample.label, " is outside [0, ", train_->classes(), ")"));
  }
  const pipeline::Pipeline& pipe = cut(ticket.split).front(ticket.left_to_trainer);
  const auto bytes = static_cast<size_t>(pipe.output_bytes());
  const auto at = static_cast<size_t>(index);
  const std::span<uint8_t> out(batch->images.data() + at * bytes, bytes);
  const int64_t epoch = ticket.split == job::Split::kTrain ? ticket.epoch : 0;
  const pipeline::SampleKey key{seed_, epoch, id};
  HETERO_RETURN_IF_ERROR(pipe.Run(sample, key, out));
  HETERO_RETURN_IF_ERROR(TakeLabel(sample, labels_are_classes_, index, batch));
  HETERO_RETURN_IF_ERROR(masks_.Run(sample, key, index, batch));
  if (ticket.split == job::Split::kTrain) {
    HETERO_RETURN_IF_ERROR(groups_.Run(sample, key, index, batch));
  }
  batch->sample_ids[at] = id;
  batch->crcs[at] = SampleCrc(*batch, index);
  return absl::OkStatus();
}

api::ImageShape SampleProducer::FrontOutput(job::Split split, int32_t left) const {
  return cut(split).front(left).output();
}

absl::Status SampleProducer::FinishSample(const Batch& half, int64_t index, Batch* batch) const {
  static thread_local KeptSample kept;
  source::RawSample& sample = kept.sample();
  const Ticket& ticket = half.ticket;
  const auto at = static_cast<size_t>(index);
  const auto half_bytes = static_cast<size_t>(half.images.size() / half.count());
  const uint8_t* begin = half.images.data() + at * half_bytes;
  sample.encoding = source::Encoding::kRaw;
  sample.shape = half.shape;
  sample.bytes.assign(begin, begin + half_bytes);
  const pipeline::Pipeline& rest = cut(ticket.split).rest(ticket.left_to_trainer);
  const auto bytes = static_cast<size_t>(rest.output_bytes());
  const std::span<uint8_t> out(batch->images.data() + at * bytes, bytes);
  const int64_t epoch = ticket.split == job::Split::kTrain ? ticket.epoch : 0;
  absl::Status status = rest.Run(sample, {seed_, epoch, half.sample_ids[at]}, out);
  kept.End();
  if (!status.ok()) return status;
  batch->crcs[at] = SampleCrc(*batch, index);
  return absl::OkStatus();
}

}  // namespace hetero::feed
