// Samples whose label is no class, from the producer over the wire to whoever takes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>

#include "api/manifest.h"
#include "base/crc32c.h"
#include "hetero/v1/feed.pb.h"
#include "runtime/feed/batch_finisher.h"
#include "runtime/feed/guarded_samples.h"
#include "runtime/feed/safetensors.h"
#include "runtime/feed/sample_producer.h"
#include "runtime/feed/stream_dump.h"
#include "runtime/feed/wire/messages.h"
#include "tests/support/temporary_folder.h"

namespace hetero::feed {
namespace {

using ::testing::HasSubstr;

// 20 pictures of 2 x 3 pixels; the label as `label` says.
api::HeteroTrainingJob Job(const api::Label& label) {
  api::HeteroTrainingJob job;
  job.spec.training.seed = 7;
  job.spec.dataset.uri = "synthetic://";
  job.spec.dataset.samples = 20;
  job.spec.dataset.classes = 10;
  job.spec.dataset.image = api::ImageShape{2, 3, 1};
  job.spec.dataset.label = label;
  api::OperatorSpec flip;
  flip.op = api::OperatorKind::kHorizontalFlip;
  job.spec.pipeline = {flip};
  return job;
}

const api::Label kFour = {api::LabelType::kFloat32, {2, 2}};
const Ticket kOfFour{.id = 3, .epoch = 1, .slots = {5, 4}};

Batch Produce(const SampleProducer& producer, const Ticket& ticket = kOfFour) {
  Batch batch = producer.Allocate(ticket, NewSlab);
  for (int64_t i = 0; i < batch.count(); ++i) {
    std::optional<BadSample> bad;
    EXPECT_TRUE(producer.Produce(&batch, i, &bad).ok());
  }
  return batch;
}

// As the documentation says it: the bytes that the checksum of an entry is of.
std::string Checked(const Batch& batch, int64_t index, const std::string& heading) {
  std::string text = "image uint8 [2,3,1]\n";
  text.append(reinterpret_cast<const char*>(batch.images.data()) + index * 6, 6);
  text += heading;
  for (const FieldTensor& field : *batch.fields) {
    text.append(reinterpret_cast<const char*>(field.of(index)),
                static_cast<size_t>(field.spec.bytes()));
  }
  return text;
}

uint32_t Crc(const std::string& text) { return base::Crc32cPortable(text.data(), text.size()); }

void ExpectSame(const Batch& a, const Batch& b) {
  ASSERT_EQ(a.count(), b.count());
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.sample_ids, b.sample_ids);
  EXPECT_EQ(a.crcs, b.crcs);
  EXPECT_EQ(a.labels, b.labels);
  ASSERT_EQ(a.images.size(), b.images.size());
  EXPECT_EQ(std::memcmp(a.images.data(), b.images.data(), static_cast<size_t>(a.images.size())), 0);
  ASSERT_EQ(a.fields.has_value(), b.fields.has_value());
  for (size_t i = 0; a.fields && i < a.fields->size(); ++i) {
    EXPECT_EQ((*a.fields)[i].spec, (*b.fields)[i].spec);
    EXPECT_EQ((*a.fields)[i].bytes, (*b.fields)[i].bytes);
  }
}

TEST(FieldsTest, TheChecksumIsOfAllFieldsByTheirNames) {
  const auto four = *SampleProducer::Create(Job(kFour));
  const Batch batch = Produce(*four);
  ASSERT_EQ(batch.count(), 4);
  EXPECT_TRUE(batch.labels.empty());
  ASSERT_EQ(batch.fields->size(), 1u);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(batch.crcs[static_cast<size_t>(i)], Crc(Checked(batch, i, "label float32 [2,2]\n")));
  }
  const auto none = *SampleProducer::Create(Job({api::LabelType::kNone}));
  const Batch bare = Produce(*none);
  ASSERT_EQ(bare.count(), 4);
  EXPECT_TRUE(bare.fields->empty());
  EXPECT_EQ(bare.crcs[2], Crc(Checked(bare, 2, "")));
  const auto classes = *SampleProducer::Create(Job({}));
  const Batch usual = Produce(*classes);
  EXPECT_EQ(usual.crcs[2],
            Crc(std::string(reinterpret_cast<const char*>(usual.images.data()) + 12, 6)))
      << "of a picture with a class it is that of the picture's bytes";
}

TEST(FieldsTest, BatchesSurviveTheTrip) {
  for (const api::Label& label :
       {kFour, api::Label{api::LabelType::kInt64}, api::Label{api::LabelType::kNone}}) {
    const auto producer = *SampleProducer::Create(Job(label));
    const Batch sent = Produce(*producer);
    const absl::StatusOr<Frame> frame =
        DecodeFrame(EncodeBatch(std::make_unique<Batch>(Produce(*producer))));
    ASSERT_TRUE(frame.ok()) << frame.status();
    ASSERT_EQ(frame->kind, Frame::Kind::kBatch) << frame->error;
    ExpectSame(*frame->batch, sent);
    EXPECT_TRUE(producer->CheckBatch(*frame->batch).ok()) << producer->CheckBatch(*frame->batch);
  }
}

// Memory that a frame only names.
class NamedOwner : public SlabOwner {
 public:
  void Release(uint8_t*) override {}
  bool HandOver(uint8_t*, v1::FrameHeader* header) override {
    header->mutable_shared()->set_flag(1);
    return true;
  }
};

// With views they are large: copies of them were memory of a worker that nobody counted.
TEST(FieldsTest, TheyAreBorrowedAndTheBatchCountsUntilTheLastIsSent) {
  for (const bool named : {false, true}) {
    SCOPED_TRACE(named);
    std::array<uint8_t, 6> pixels = {};
    auto batch = std::make_unique<Batch>();
    batch->ticket = kOfFour;
    batch->ticket.slots.count = 1;
    batch->shape = {2, 3, 1};
    batch->images = named ? Slab(pixels.data(), 6, std::make_shared<NamedOwner>()) : Slab(6);
    std::memset(batch->images.data(), 7, 6);
    batch->sample_ids = {5};
    batch->crcs = {0};
    batch->fields.emplace();
    const auto add = [&batch](const std::string& name, int32_t size) {
      batch->fields->push_back({{name, job::FieldType::kUint8, {size}},
                                std::vector<uint8_t>(static_cast<size_t>(size), 9)});
      return batch->fields->back().bytes.data();
    };
    const uint8_t* const small = add("label", 3);
    const uint8_t* const large = add("local", 1 << 20);
    auto counted = std::make_shared<int>(0);
    const std::weak_ptr<int> counts = counted;
    batch->counted = std::move(counted);
    grpc::ByteBuffer buffer = EncodeBatch(std::move(batch));
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(buffer.Dump(&slices).ok());
    ASSERT_EQ(slices.size(), named ? 3u : 4u);
    EXPECT_EQ(slices[slices.size() - 2].begin(), small);
    EXPECT_EQ(slices[slices.size() - 2].size(), 3u);
    EXPECT_EQ(slices.back().begin(), large);
    EXPECT_EQ(slices.back().size(), size_t{1} << 20);
    buffer.Clear();
    slices.erase(slices.begin(), slices.end() - 1);
    EXPECT_FALSE(counts.expired());
    slices.clear();
    EXPECT_TRUE(counts.expired());
  }
}

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  return bytes;
}

grpc::ByteBuffer Buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

TEST(FieldsTest, AFlippedBitOfALabelIsFound) {
  const auto producer = *SampleProducer::Create(Job(kFour));
  std::string bytes = Bytes(EncodeBatch(std::make_unique<Batch>(Produce(*producer))));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  // And the frame behind it is read.
  const grpc::ByteBuffer two = Buffer(bytes + Bytes(EncodeStarted(kOfFour)));
  std::vector<Frame> frames;
  ASSERT_TRUE(
      DecodeFrames(two, NoMemory, [&](Frame frame) { frames.push_back(std::move(frame)); }).ok());
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_TRUE(frames[0].damaged);
  EXPECT_EQ(frames[1].kind, Frame::Kind::kStarted);
}

// A frame of a worker that does not keep to what this code would write.
TEST(FieldsTest, FieldsThatCannotBeAreRefusedBeforeMemoryIsTaken) {
  v1::FrameHeader good;
  good.set_kind(v1::FrameHeader::BATCH);
  good.mutable_ticket()->set_count(1);
  good.set_height(1);
  good.set_width(1);
  good.set_channels(1);
  good.add_sample_ids(7);
  good.add_sample_crc32c(0);
  v1::FieldSet::Field* field = good.mutable_fields()->add_fields();
  field->set_name("label");
  field->add_shape(2);
  const auto decode = [&good](const std::function<void(v1::FrameHeader&)>& change) {
    v1::FrameHeader header = good;
    change(header);
    const std::string text = header.SerializeAsString();
    std::string bytes;
    for (const size_t number : {text.size(), size_t{base::Crc32c(text.data(), text.size())}}) {
      for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(number >> (8 * i)));
    }
    return DecodeFrame(Buffer(bytes + text + std::string(17, '\0'))).status();
  };
  EXPECT_TRUE(decode([](auto&) {}).ok()) << decode([](auto&) {});
  const auto refused = [&](const std::function<void(v1::FrameHeader&)>& change,
                           const std::string& says) {
    const absl::Status status = decode(change);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  };
  refused([](auto& h) { h.add_labels(1); }, "labels");
  refused([](auto& h) { h.mutable_fields()->mutable_fields(0)->set_shape(0, 3); },
          "24 bytes of fields announced, 16 bytes sent");
  refused([](auto& h) { h.mutable_fields()->mutable_fields(0)->set_shape(0, 0); }, "shape");
  refused([](auto& h) { h.mutable_fields()->mutable_fields(0)->set_shape(0, -1); }, "shape");
  refused(
      [](auto& h) {
        for (int i = 0; i < 8; ++i) h.mutable_fields()->mutable_fields(0)->add_shape(1 << 30);
      },
      "shape");
  refused([](auto& h) { h.mutable_fields()->mutable_fields(0)->set_name("image"); }, "name");
  refused([](auto& h) { h.mutable_fields()->mutable_fields(0)->set_name(std::string(64, 'x')); },
          "name");
  refused([](auto& h) { *h.mutable_fields()->add_fields() = h.fields().fields(0); }, "order");
  refused(
      [](auto& h) {
        for (int i = 0; i < 64; ++i) h.mutable_fields()->add_fields();
      },
      "65 fields, 64 at most");
}

TEST(FieldsTest, BatchesWithOtherFieldsAreRefused) {
  const auto four = *SampleProducer::Create(Job(kFour));
  const auto said = [&](const api::Label& other) {
    const auto producer = *SampleProducer::Create(Job(other));
    const absl::Status status = four->CheckBatch(Produce(*producer));
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(
      said({api::LabelType::kFloat32, {4}}),
      HasSubstr("samples with label float32 [4] where this job's have label float32 [2,2]"));
  EXPECT_THAT(said({api::LabelType::kNone}), HasSubstr("samples with no label where"));
  EXPECT_THAT(said({}), HasSubstr("samples with classes where"));
}

TEST(FieldsTest, ChildProcessesProduceTheSame) {
  const auto producer = *SampleProducer::Create(Job(kFour));
  const Batch want = Produce(*producer);
  Batch batch = producer->Allocate(kOfFour, NewSlab);
  const auto made = ProduceGuarded(*producer, &batch, 0, 4, GuardLimits{}, base::Clock::Real(),
                                   std::stop_token());
  ASSERT_TRUE(made.ok()) << made.status();
  ExpectSame(batch, want);
}

TEST(FieldsTest, WhatAWorkerLeavesToTheTrainerComesOutTheSame) {
  const auto producer = *SampleProducer::Create(Job(kFour));
  const Batch want = Produce(*producer);
  Ticket half = kOfFour;
  half.left_to_trainer = 1;
  ASSERT_TRUE(producer->Check(half).ok()) << producer->Check(half);
  BatchFinisher finisher(*producer);
  finisher.Add({1, std::make_shared<Batch>(Produce(*producer, half))});
  Batch batch = finisher.Allocate(kOfFour, NewSlab);
  for (int64_t i = 0; i < batch.count(); ++i) {
    std::optional<BadSample> bad;
    ASSERT_TRUE(finisher.Produce(&batch, i, &bad).ok());
  }
  ExpectSame(batch, want);
}

TEST(FieldsTest, ADumpHasThemByTheirNames) {
  const auto producer = *SampleProducer::Create(Job(kFour));
  const Batch batch = Produce(*producer);
  testing::TemporaryFolder folder;
  const auto dump = StreamDump::Create(folder.path());
  ASSERT_TRUE(dump.ok() && (*dump)->Write(batch).ok());
  const auto file = ReadSafetensors(folder / "rank0-step000000.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->tensors.contains("labels"));
  const auto& label = file->tensors.at("label");
  EXPECT_EQ(label.type, TensorType::kFloat32);
  EXPECT_EQ(label.shape, (std::vector<int64_t>{4, 2, 2}));
  EXPECT_EQ(label.data, batch.fields->front().bytes);
}

}  // namespace
}  // namespace hetero::feed
