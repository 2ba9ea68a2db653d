#include "runtime/feed/sample_producer.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <utility>

#include "base/crc32c.h"
#include "base/fake_clock.h"
#include "runtime/job/permutation.h"
#include "runtime/job/replacement.h"

namespace hetero::feed {
namespace {

constexpr int64_t kSamples = 20;

// Raw 2 x 2 x 1 pictures filled with their id; some bad, some behind a storage that fails at first.
class FaultyDataset : public source::Dataset {
 public:
  int64_t size() const override { return kSamples; }
  int32_t classes() const override { return 4; }
  api::ImageShape image() const override { return {2, 2, 1}; }
  absl::Status Read(int64_t id, source::RawSample* sample) const override {
    if (failures[id] > 0) {
      --failures[id];
      return absl::UnavailableError("storage is away");
    }
    if (id == bad_bytes) return absl::DataLossError(Describe(id) + ": damaged");
    sample->encoding = source::Encoding::kRaw;
    sample->shape = image();
    sample->bytes.assign(4, static_cast<uint8_t>(id));
    sample->label = id == bad_label ? 4 : static_cast<int32_t>(id % 4);
    return absl::OkStatus();
  }
  std::string Describe(int64_t id) const override { return "sample " + std::to_string(id); }
  std::string fingerprint() const override { return "0123456789abcdef"; }

  mutable std::map<int64_t, int> failures;
  int64_t bad_bytes = -1;
  int64_t bad_label = -1;
};

// Sleeps take no time.
class InstantClock : public base::FakeClock {
 public:
  bool SleepFor(base::Duration, std::stop_token) override {
    ++sleeps;
    return true;
  }
  int sleeps = 0;
};

class SampleProducerTest : public ::testing::Test {
 protected:
  SampleProducerTest() {
    job_.spec.training.seed = 7;
    auto dataset = std::make_unique<FaultyDataset>();
    data_ = dataset.get();
    producer_ = *SampleProducer::Create(job_, std::move(dataset), nullptr, clock_);
  }
  int64_t IdAt(int64_t slot) const {
    return job::Permutation(7, 3, kSamples, job_.spec.dataset.shuffle).At(slot);
  }

  api::HeteroTrainingJob job_;
  InstantClock clock_;
  FaultyDataset* data_;
  std::unique_ptr<SampleProducer> producer_;
  const Ticket ticket_{.epoch = 3, .slots = {5, 4}};
};

TEST_F(SampleProducerTest, FillsTheEntryOfTheSlotsSample) {
  Batch batch = producer_->Allocate(ticket_, NewSlab);
  std::optional<BadSample> bad;
  ASSERT_TRUE(producer_->Produce(&batch, 2, &bad).ok());
  EXPECT_FALSE(bad.has_value());
  const int64_t id = IdAt(7);
  EXPECT_EQ(batch.sample_ids[2], id);
  EXPECT_EQ(batch.labels[2], id % 4);
  EXPECT_EQ(batch.images.data()[8], id);
  EXPECT_EQ(batch.crcs[2], base::Crc32c(batch.images.data() + 8, 4));
}

TEST_F(SampleProducerTest, BadSamplesAreReplacedByAFunctionOfTheSlot) {
  for (const bool label : {false, true}) {
    const int64_t id = IdAt(6);
    (label ? data_->bad_label : data_->bad_bytes) = id;
    Batch batch = producer_->Allocate(ticket_, NewSlab);
    std::optional<BadSample> bad;
    ASSERT_TRUE(producer_->Produce(&batch, 1, &bad).ok());
    int64_t replacement = id;
    for (int k = 1; replacement == id; ++k) replacement = job::Replacement(7, 3, 6, k, kSamples);
    ASSERT_TRUE(bad.has_value());
    EXPECT_EQ(bad->slot, 6);
    EXPECT_EQ(bad->sample_id, id);
    EXPECT_EQ(bad->replacement_id, replacement);
    EXPECT_EQ(batch.sample_ids[1], replacement);
    // Named once, whether or not the dataset has done so.
    EXPECT_EQ(bad->reason, "sample " + std::to_string(id) +
                               (label ? ": label 4 is outside [0, 4)" : ": damaged"));
    data_->bad_bytes = -1;
  }
}

TEST_F(SampleProducerTest, StorageErrorsAreRetriedThreeTimesAndNeverReplaced) {
  Batch batch = producer_->Allocate(ticket_, NewSlab);
  std::optional<BadSample> bad;
  data_->failures[IdAt(5)] = 3;
  EXPECT_TRUE(producer_->Produce(&batch, 0, &bad).ok());
  EXPECT_EQ(clock_.sleeps, 3);
  data_->failures[IdAt(5)] = 4;
  EXPECT_TRUE(absl::IsUnavailable(producer_->Produce(&batch, 0, &bad)));
  EXPECT_FALSE(bad.has_value());
}

// A worker that sees other data has another order: samples would be missing or come twice,
// silently.
TEST_F(SampleProducerTest, BatchesOfAnotherOrderOrShapeAreRefused) {
  data_->bad_bytes = IdAt(6);
  Batch good = producer_->Allocate(ticket_, NewSlab);
  for (int64_t i = 0; i < good.count(); ++i) {
    std::optional<BadSample> bad;
    ASSERT_TRUE(producer_->Produce(&good, i, &bad).ok());
    if (bad) good.bad_samples.push_back(*bad);
  }
  ASSERT_EQ(good.bad_samples.size(), 1u);
  EXPECT_TRUE(producer_->CheckBatch(good).ok()) << producer_->CheckBatch(good);

  const auto refused = [&](const std::function<void(Batch*)>& change) {
    Batch batch = producer_->Allocate(ticket_, NewSlab);
    batch.sample_ids = good.sample_ids;
    batch.labels = good.labels;
    batch.bad_samples = good.bad_samples;
    change(&batch);
    const absl::Status status = producer_->CheckBatch(batch);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    return std::string(status.message());
  };
  const std::string other = refused([&](Batch* b) { b->sample_ids[0] = IdAt(9); });
  EXPECT_NE(other.find("where slot 5 of epoch 3 has sample " + std::to_string(IdAt(5)) + " of 20"),
            std::string::npos)
      << other;
  refused([](Batch* b) { b->bad_samples.clear(); });
  refused([&](Batch* b) { b->bad_samples[0].sample_id = IdAt(5); });
  refused([](Batch* b) { b->labels[1] = 4; });
  refused([](Batch* b) { b->labels[1] = -1; });
  refused([](Batch* b) { b->shape.height = 3; });
  refused([](Batch* b) { b->ticket.left_to_trainer = 7; });
}

TEST_F(SampleProducerTest, TheLibrariesThatDecidePixelsAreNamed) {
  EXPECT_FALSE(producer_->environment().at("libjpeg-turbo").empty());
  EXPECT_FALSE(producer_->environment().at("libpng").empty());
}

TEST_F(SampleProducerTest, TicketsFromTheNetworkAreChecked) {
  EXPECT_TRUE(producer_->Check(ticket_).ok());
  for (const job::SlotRange slots : {job::SlotRange{-1, 2}, {0, -1}, {18, 3}, {INT64_MAX, 1}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(producer_->Check({.slots = slots}))) << slots.first;
  }
  EXPECT_FALSE(producer_->Check({.split = job::Split::kValidation, .slots = {0, 1}}).ok());
}

}  // namespace
}  // namespace hetero::feed
