// Samples with a mask, from the shard to the frame.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "runtime/feed/guarded_samples.h"
#include "runtime/feed/safetensors.h"
#include "runtime/feed/sample_producer.h"
#include "runtime/feed/stream_dump.h"
#include "runtime/feed/wire/messages.h"
#include "runtime/job/philox.h"
#include "runtime/pipeline/decode.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/source/tar_files.h"

namespace hetero::feed {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kHeight = 37, kWidth = 53;
constexpr int64_t kPixels = int64_t{kHeight} * kWidth;
constexpr int kSamples = 12;

std::string Golden(const std::string& file) {
  return testing::ReadFileOrDie(testing::SourceDir() + "/tests/golden/" + file);
}

class MaskBatches : public ::testing::Test {
 protected:
  MaskBatches() : mask_(Golden("masks/voc.png")) {
    for (int i = 0; i < kSamples; ++i) {
      files_.emplace_back(absl::StrCat(i, ".png"), Golden("pipeline/rgb.png"));
      files_.emplace_back(absl::StrCat(i, ".seg.png"), mask_);
      files_.emplace_back(absl::StrCat(i, ".cls"), absl::StrCat(i % 3));
    }
    job_.spec.training.seed = 5;
    job_.spec.dataset.format = api::DatasetFormat::kWebDataset;
    job_.spec.dataset.uri = "file://" + folder_.path();
    job_.spec.dataset.fields.mask = "seg.png";
    job_.spec.pipeline = {Op(api::OperatorKind::kDecode), Op(api::OperatorKind::kHorizontalFlip),
                          Op(api::OperatorKind::kColorJitter), Op(api::OperatorKind::kCenterCrop),
                          Op(api::OperatorKind::kNormalize)};
    job_.spec.pipeline[2].hue = api::Range{-0.2, 0.2};
    job_.spec.pipeline[3].size = api::Size{kHeight, kWidth};
    Move("mask");
  }

  static api::OperatorSpec Op(api::OperatorKind kind) {
    api::OperatorSpec spec;
    spec.op = kind;
    return spec;
  }
  void Move(const std::string& name) {
    job_.spec.pipeline[1].also = job_.spec.pipeline[3].also = {name};
  }
  std::unique_ptr<SampleProducer> Producer() {
    folder_.Write("a.tar", source::TarOf(files_));
    auto producer = SampleProducer::Create(job_);
    EXPECT_TRUE(producer.ok()) << producer.status();
    return producer.ok() ? *std::move(producer) : nullptr;
  }
  static Batch Produce(const SampleProducer& producer, std::vector<BadSample>* bad_samples = {}) {
    Batch batch = producer.Allocate(kTicket, NewSlab);
    for (int64_t i = 0; i < batch.count(); ++i) {
      std::optional<BadSample> bad;
      const absl::Status produced = producer.Produce(&batch, i, &bad);
      EXPECT_TRUE(produced.ok()) << produced;
      if (bad && bad_samples != nullptr) bad_samples->push_back(*bad);
    }
    return batch;
  }
  // As this sample's flip leaves it.
  std::vector<uint8_t> WantedMask(int64_t id) {
    const std::vector<uint8_t> file(mask_.begin(), mask_.end());
    pipeline::Image mask;
    EXPECT_TRUE(pipeline::DecodeMask(file, {kHeight, kWidth}, &mask).ok());
    job::RandomStream random(5, kTicket.epoch, id, /*position=*/1);
    if (random.NextDouble() < 0.5) {
      for (int32_t y = 0; y < kHeight; ++y) std::reverse(mask.row(y), mask.row(y) + kWidth);
    }
    return mask.bytes;
  }

  static constexpr Ticket kTicket{.id = 3, .epoch = 1, .slots = {0, kSamples}};
  const std::string mask_;
  std::vector<std::pair<std::string, std::string>> files_;
  testing::TemporaryFolder folder_;
  api::HeteroTrainingJob job_;
};

TEST_F(MaskBatches, HaveAClassAndAMask) {
  const auto producer = Producer();
  const Batch batch = Produce(*producer);
  ASSERT_TRUE(batch.fields.has_value());
  ASSERT_EQ(batch.fields->size(), 2u);
  const FieldTensor& label = (*batch.fields)[0];
  const FieldTensor& mask = (*batch.fields)[1];
  EXPECT_EQ(label.spec, (job::FieldSpec{"label", job::FieldType::kInt64, {}}));
  EXPECT_EQ(mask.spec, (job::FieldSpec{"mask", job::FieldType::kUint8, {kHeight, kWidth}}));
  EXPECT_TRUE(batch.labels.empty());
  for (int64_t i = 0; i < kSamples; ++i) {
    const int64_t id = batch.sample_ids[static_cast<size_t>(i)];
    int64_t number = 0;
    std::memcpy(&number, label.of(i), sizeof number);
    EXPECT_EQ(number, id % 3);
    EXPECT_EQ(std::vector<uint8_t>(mask.of(i), mask.of(i) + kPixels), WantedMask(id)) << id;
    std::string checked = "image uint8 [37,53,3]\n";
    checked.append(reinterpret_cast<const char*>(batch.images.data()) + i * 3 * kPixels,
                   3 * kPixels);
    checked += "label int64 []\n";
    checked.append(reinterpret_cast<const char*>(label.of(i)), 8);
    checked += "mask uint8 [37,53]\n";
    checked.append(reinterpret_cast<const char*>(mask.of(i)), kPixels);
    EXPECT_EQ(batch.crcs[static_cast<size_t>(i)],
              base::Crc32cPortable(checked.data(), checked.size()));
  }
}

void ExpectSameFields(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.crcs, b.crcs);
  ASSERT_EQ(a.fields->size(), b.fields->size());
  for (size_t i = 0; i < a.fields->size(); ++i) {
    EXPECT_EQ((*a.fields)[i].spec, (*b.fields)[i].spec);
    EXPECT_EQ((*a.fields)[i].bytes, (*b.fields)[i].bytes);
  }
}

TEST_F(MaskBatches, SurviveTheTripAndChildProcesses) {
  job_.spec.dataset.mask = api::Mask{.name = "a", .fill = 255};
  job_.spec.dataset.label = api::Label{.type = api::LabelType::kNone};
  Move("a");
  const auto producer = Producer();
  const Batch want = Produce(*producer);
  ASSERT_EQ(want.fields->size(), 1u);
  EXPECT_EQ(want.fields->front().spec.name, "a");
  const auto frame = DecodeFrame(EncodeBatch(std::make_unique<Batch>(Produce(*producer))));
  ASSERT_TRUE(frame.ok()) << frame.status();
  ASSERT_EQ(frame->kind, Frame::Kind::kBatch) << frame->error;
  ExpectSameFields(*frame->batch, want);
  EXPECT_TRUE(producer->CheckBatch(*frame->batch).ok()) << producer->CheckBatch(*frame->batch);
  Batch guarded = producer->Allocate(kTicket, NewSlab);
  const auto made = ProduceGuarded(*producer, &guarded, 0, kSamples, GuardLimits{},
                                   base::Clock::Real(), std::stop_token());
  ASSERT_TRUE(made.ok()) << made.status();
  ExpectSameFields(guarded, want);
}

TEST_F(MaskBatches, AClassBeyondThoseThatThereAreIsRefused) {
  const auto producer = Producer();
  Batch batch = Produce(*producer);
  EXPECT_TRUE(producer->CheckBatch(batch).ok()) << producer->CheckBatch(batch);
  const int64_t wrong = 3;
  std::memcpy(batch.fields->front().of(2), &wrong, sizeof wrong);
  EXPECT_THAT(std::string(producer->CheckBatch(batch).message()),
              HasSubstr("label 3 where this job has 3 classes"));
}

TEST_F(MaskBatches, NothingIsLeftToTheTrainer) {
  const auto producer = Producer();
  Ticket half = kTicket;
  for (half.left_to_trainer = 1; half.left_to_trainer < 4; ++half.left_to_trainer) {
    EXPECT_THAT(std::string(producer->Check(half).message()), HasSubstr("cannot be cut"));
  }
  EXPECT_EQ(producer->sample_bytes(), 4 * kPixels);
}

TEST_F(MaskBatches, WithoutAGoodMaskASampleIsReplaced) {
  const std::string whole = mask_;
  files_[3 * 2 + 1].second = whole.substr(0, whole.size() / 2);
  files_[3 * 5 + 1].second = Golden("pipeline/grey.png");
  files_[3 * 7 + 1].first = "7.depth.png";
  files_[3 * 9 + 1].second = Golden("pipeline/rgb.png");
  const auto producer = Producer();
  std::vector<BadSample> bad;
  const Batch batch = Produce(*producer, &bad);
  std::map<int64_t, std::string> reasons;
  for (const BadSample& sample : bad) reasons[sample.sample_id] = sample.reason;
  ASSERT_EQ(reasons.size(), 4u);
  EXPECT_THAT(reasons[2], ::testing::AllOf(HasSubstr("a.tar: byte"), HasSubstr("mask: PNG: ")));
  EXPECT_THAT(reasons[5], HasSubstr("mask: PNG: 28x28, and the picture is 37x53"));
  EXPECT_THAT(reasons[7], HasSubstr("has no mask under seg.png"));
  EXPECT_THAT(reasons[9], HasSubstr("mask: PNG: has colours of 8 bits"));
  const FieldTensor& mask = (*batch.fields)[1];
  for (int64_t i = 0; i < kSamples; ++i) {
    const int64_t id = batch.sample_ids[static_cast<size_t>(i)];
    EXPECT_FALSE(reasons.contains(id));
    EXPECT_EQ(std::vector<uint8_t>(mask.of(i), mask.of(i) + kPixels), WantedMask(id)) << id;
  }
}

TEST_F(MaskBatches, ADumpHasThem) {
  const auto producer = Producer();
  const Batch batch = Produce(*producer);
  testing::TemporaryFolder folder;
  const auto dump = StreamDump::Create(folder.path());
  ASSERT_TRUE(dump.ok() && (*dump)->Write(batch).ok());
  const auto file = ReadSafetensors(folder / "rank0-step000000.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto& mask = file->tensors.at("mask");
  EXPECT_EQ(mask.type, TensorType::kUint8);
  EXPECT_EQ(mask.shape, (std::vector<int64_t>{kSamples, kHeight, kWidth}));
  EXPECT_EQ(mask.data, (*batch.fields)[1].bytes);
}

}  // namespace
}  // namespace hetero::feed
