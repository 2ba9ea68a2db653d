// Several views of a sample, from the producer over the wire to whoever takes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "hetero/v1/feed.pb.h"
#include "runtime/feed/digest.h"
#include "runtime/feed/guarded_samples.h"
#include "runtime/feed/placement.h"
#include "runtime/feed/safetensors.h"
#include "runtime/feed/sample_producer.h"
#include "runtime/feed/stream_dump.h"
#include "runtime/feed/wire/messages.h"
#include "runtime/job/sample_order.h"
#include "tests/support/temporary_folder.h"

namespace hetero::feed {
namespace {

using ::testing::HasSubstr;

const Ticket kOfFour{.id = 3, .epoch = 1, .slots = {5, 4}};

api::OperatorSpec Sized(api::OperatorKind kind, int32_t side, std::vector<std::string> views) {
  api::OperatorSpec spec;
  spec.op = kind;
  spec.size = api::Size{side, side};
  spec.views = std::move(views);
  return spec;
}

// 20 pictures of 16 x 16 pixels, cut to 8 x 8 for the image and to 4 x 4 for all other views.
api::HeteroTrainingJob Job(std::vector<api::View> views) {
  api::HeteroTrainingJob job;
  job.spec.training.seed = 7;
  job.spec.training.script.emplace();
  job.spec.dataset.uri = "synthetic://";
  job.spec.dataset.samples = 20;
  job.spec.dataset.classes = 10;
  job.spec.dataset.image = api::ImageShape{16, 16, 3};
  std::vector<std::string> further;
  for (const api::View& view : views) {
    if (view.name != "image") further.push_back(view.name);
  }
  job.spec.pipeline = {Sized(api::OperatorKind::kRandomResizedCrop, 8, {"image"})};
  if (!further.empty()) {
    job.spec.pipeline.push_back(Sized(api::OperatorKind::kRandomResizedCrop, 4, further));
  }
  api::OperatorSpec flip;
  flip.op = api::OperatorKind::kHorizontalFlip;
  job.spec.pipeline.push_back(flip);
  job.spec.views = std::move(views);
  return job;
}

const std::vector<api::View> kMultiCrop = {{"local", 3}, {"image", 2}, {"alone", 1}};

std::unique_ptr<SampleProducer> Producer(const api::HeteroTrainingJob& job) {
  auto producer = SampleProducer::Create(job);
  EXPECT_TRUE(producer.ok()) << producer.status();
  return producer.ok() ? *std::move(producer) : nullptr;
}

Batch Produced(const SampleProducer& producer, const Ticket& ticket = kOfFour) {
  Batch batch = producer.Allocate(ticket, NewSlab);
  for (int64_t i = 0; i < batch.count(); ++i) {
    std::optional<BadSample> bad;
    EXPECT_TRUE(producer.Produce(&batch, i, &bad).ok());
  }
  return batch;
}

std::string Image(const Batch& batch, int64_t index) {
  const auto size = static_cast<size_t>(batch.images.size() / batch.count());
  return {reinterpret_cast<const char*>(batch.images.data()) + static_cast<size_t>(index) * size,
          size};
}

std::string Field(const Batch& batch, const std::string& name, int64_t index) {
  for (const FieldTensor& field : *batch.fields) {
    if (field.spec.name != name) continue;
    return {reinterpret_cast<const char*>(field.of(index)),
            static_cast<size_t>(field.spec.bytes())};
  }
  ADD_FAILURE() << "no field " << name;
  return "";
}

uint32_t Crc(const std::string& text) { return base::Crc32cPortable(text.data(), text.size()); }

// What one pipeline, of operators that are for no view in particular, makes of sample `id`.
std::string Alone(const SampleProducer& producer, std::vector<api::OperatorSpec> operators,
                  int64_t id, int32_t view, int32_t first_position) {
  for (api::OperatorSpec& op : operators) op.views.clear();
  const source::Dataset& dataset = producer.dataset(job::Split::kTrain);
  auto pipeline = pipeline::Pipeline::Create({operators[0]}, dataset.image(), job::Split::kTrain,
                                             base::Clock::Real(), first_position);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  source::RawSample sample;
  EXPECT_TRUE(dataset.Read(id, &sample).ok());
  std::string cropped(static_cast<size_t>((*pipeline)->output_bytes()), '\0');
  const auto span = [](std::string& text) {
    return std::span(reinterpret_cast<uint8_t*>(text.data()), text.size());
  };
  const pipeline::SampleKey key{7, kOfFour.epoch, id, view};
  EXPECT_TRUE((*pipeline)->Run(sample, key, span(cropped)).ok());
  auto flip = pipeline::Pipeline::Create({operators.back()}, (*pipeline)->output(),
                                         job::Split::kTrain, base::Clock::Real(), 2);
  source::RawSample between;
  between.shape = (*pipeline)->output();
  between.bytes.assign(cropped.begin(), cropped.end());
  EXPECT_TRUE((*flip)->Run(between, key, span(cropped)).ok());
  return cropped;
}

TEST(ViewsTest, OneViewIsWhatThereWasBefore) {
  const api::HeteroTrainingJob named = Job({{"image", 1}});
  api::HeteroTrainingJob plain = named;
  plain.spec.views.clear();
  plain.spec.pipeline[0].views.clear();
  const auto one = Producer(named), before = Producer(plain);
  const Batch a = Produced(*one), b = Produced(*before);
  EXPECT_EQ(a.views, 1);
  EXPECT_FALSE(a.fields.has_value());
  EXPECT_EQ(a.crcs, b.crcs);
  EXPECT_EQ(a.labels, b.labels);
  ASSERT_EQ(a.images.size(), b.images.size());
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(Image(a, i), Image(b, i));
  EXPECT_TRUE(one->cut(job::Split::kTrain).CanLeave(1));

  plain.spec.views = named.spec.views;
  const std::string order = job::SampleOrderOf(plain).pipeline;
  plain.spec.views.clear();
  EXPECT_EQ(job::SampleOrderOf(plain).pipeline, order);
  plain.spec.views = {{"image", 2}};
  EXPECT_NE(job::SampleOrderOf(plain).pipeline, order);
}

TEST(ViewsTest, ViewsOfTheImageLieOneBehindTheOther) {
  const api::HeteroTrainingJob job = Job({{"image", 3}});
  const auto producer = Producer(job);
  api::HeteroTrainingJob single = job;
  single.spec.views.clear();
  single.spec.pipeline[0].views.clear();
  const Batch first = Produced(*Producer(single));
  const Batch batch = Produced(*producer);
  EXPECT_EQ(batch.views, 3);
  EXPECT_EQ(batch.shape, (api::ImageShape{8, 8, 3}));
  EXPECT_EQ(batch.image_shape(), (std::vector<int32_t>{3, 8, 8, 3}));
  EXPECT_FALSE(batch.fields.has_value()) << "a class costs what it did";
  ASSERT_EQ(batch.images.size(), 4 * 3 * 8 * 8 * 3);
  EXPECT_EQ(producer->sample_bytes(), 3 * 8 * 8 * 3);
  for (int64_t i = 0; i < 4; ++i) {
    const std::string image = Image(batch, i);
    EXPECT_EQ(image.substr(0, 192), Image(first, i)) << "the first is that of a job without views";
    EXPECT_EQ(batch.crcs[static_cast<size_t>(i)], Crc(image));
    std::set<std::string> distinct;
    for (size_t view = 0; view < 3; ++view) distinct.insert(image.substr(view * 192, 192));
    EXPECT_EQ(distinct.size(), 3u);
  }
}

TEST(ViewsTest, EachViewIsThePipelineWithTheDocumentedKey) {
  const api::HeteroTrainingJob job = Job(kMultiCrop);
  const auto producer = Producer(job);
  const Batch batch = Produced(*producer);
  // Crops of the image are entry 0 of the manifest, those of other views entry 1, the flip entry 2.
  const std::vector<api::OperatorSpec> of_image = {job.spec.pipeline[0], job.spec.pipeline[2]};
  const std::vector<api::OperatorSpec> of_others = {job.spec.pipeline[1], job.spec.pipeline[2]};
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t id = batch.sample_ids[static_cast<size_t>(i)];
    std::string image, local;
    for (int32_t k = 0; k < 2; ++k) image += Alone(*producer, of_image, id, k, 0);
    for (int32_t k = 0; k < 3; ++k) local += Alone(*producer, of_others, id, 64 + k, 1);
    EXPECT_EQ(Image(batch, i), image);
    EXPECT_EQ(Field(batch, "local", i), local);
    EXPECT_EQ(Field(batch, "alone", i), Alone(*producer, of_others, id, 128, 1));
  }
}

TEST(ViewsTest, FurtherViewsAreFieldsAndTheClassIsOneBesideThem) {
  const auto producer = Producer(Job(kMultiCrop));
  const Batch batch = Produced(*producer);
  EXPECT_TRUE(batch.labels.empty());
  std::vector<job::FieldSpec> specs;
  for (const FieldTensor& field : *batch.fields) specs.push_back(field.spec);
  EXPECT_EQ(specs, (std::vector<job::FieldSpec>{{"alone", job::FieldType::kUint8, {4, 4, 3}},
                                                {"label", job::FieldType::kInt64, {}},
                                                {"local", job::FieldType::kUint8, {3, 4, 4, 3}}}));
  EXPECT_EQ(producer->sample_bytes(), 2 * 192 + 3 * 48 + 48);
  EXPECT_EQ(batch.tensor_bytes(), 4 * (2 * 192 + 3 * 48 + 48 + 8));
  for (int64_t i = 0; i < 4; ++i) {
    source::RawSample sample;
    ASSERT_TRUE(producer->dataset(job::Split::kTrain)
                    .Read(batch.sample_ids[static_cast<size_t>(i)], &sample)
                    .ok());
    int64_t label = -1;
    std::memcpy(&label, Field(batch, "label", i).data(), sizeof label);
    EXPECT_EQ(label, sample.label);
    EXPECT_EQ(batch.crcs[static_cast<size_t>(i)],
              Crc("alone uint8 [4,4,3]\n" + Field(batch, "alone", i) + "image uint8 [2,8,8,3]\n" +
                  Image(batch, i) + "label int64 []\n" + Field(batch, "label", i) +
                  "local uint8 [3,4,4,3]\n" + Field(batch, "local", i)));
  }
}

void ExpectSame(const Batch& a, const Batch& b) {
  ASSERT_EQ(a.count(), b.count());
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.views, b.views);
  EXPECT_EQ(a.sample_ids, b.sample_ids);
  EXPECT_EQ(a.crcs, b.crcs);
  EXPECT_EQ(a.labels, b.labels);
  ASSERT_EQ(a.images.size(), b.images.size());
  for (int64_t i = 0; i < a.count(); ++i) EXPECT_EQ(Image(a, i), Image(b, i));
  ASSERT_EQ(a.fields.has_value(), b.fields.has_value());
  for (size_t i = 0; a.fields && i < a.fields->size(); ++i) {
    EXPECT_EQ((*a.fields)[i].spec, (*b.fields)[i].spec);
    EXPECT_EQ((*a.fields)[i].bytes, (*b.fields)[i].bytes);
  }
}

TEST(ViewsTest, BatchesSurviveTheTrip) {
  for (const std::vector<api::View>& views :
       {std::vector<api::View>{{"image", 2}}, std::vector<api::View>{{"local", 3}}, kMultiCrop}) {
    const auto producer = Producer(Job(views));
    const absl::StatusOr<Frame> frame =
        DecodeFrame(EncodeBatch(std::make_unique<Batch>(Produced(*producer))));
    ASSERT_TRUE(frame.ok()) << frame.status();
    ASSERT_EQ(frame->kind, Frame::Kind::kBatch) << frame->error;
    ExpectSame(*frame->batch, Produced(*producer));
    EXPECT_TRUE(producer->CheckBatch(*frame->batch).ok()) << producer->CheckBatch(*frame->batch);
  }
}

TEST(ViewsTest, BatchesWithOtherViewsAreRefused) {
  const auto two = Producer(Job({{"image", 2}}));
  const auto said = [&](std::vector<api::View> views) {
    const absl::Status status = two->CheckBatch(Produced(*Producer(Job(std::move(views)))));
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(said({{"image", 3}}), HasSubstr("3 views of a sample where this job has 2"));
  EXPECT_THAT(said({{"image", 1}}), HasSubstr("1 views of a sample where this job has 2"));
  EXPECT_THAT(said({{"image", 2}, {"local", 1}}),
              HasSubstr("label int64 [], local uint8 [4,4,3] where this job's have classes"));
  Batch wrong = Produced(*Producer(Job(kMultiCrop)));
  const auto multi = Producer(Job(kMultiCrop));
  EXPECT_TRUE(multi->CheckBatch(wrong).ok());
  const int64_t outside = 10;
  std::memcpy((*wrong.fields)[1].of(2), &outside, sizeof outside);
  EXPECT_THAT(std::string(multi->CheckBatch(wrong).message()),
              HasSubstr("label 10 where this job has 10 classes"));
}

TEST(ViewsTest, FramesOfImpossibleViewsAreRefused) {
  const auto decode = [](int32_t views, size_t sent) {
    v1::FrameHeader header;
    header.set_kind(v1::FrameHeader::BATCH);
    header.mutable_ticket()->set_count(1);
    header.set_height(1);
    header.set_width(1);
    header.set_channels(1);
    header.set_views(views);
    header.add_sample_ids(7);
    header.add_labels(0);
    header.add_sample_crc32c(0);
    const std::string text = header.SerializeAsString();
    std::string bytes;
    for (const size_t number : {text.size(), size_t{base::Crc32c(text.data(), text.size())}}) {
      for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(number >> (8 * i)));
    }
    const grpc::Slice slice(bytes + text + std::string(sent, '\0'));
    return DecodeFrame(grpc::ByteBuffer(&slice, 1)).status();
  };
  EXPECT_TRUE(decode(0, 1).ok()) << decode(0, 1);
  EXPECT_TRUE(decode(2, 2).ok()) << decode(2, 2);
  EXPECT_TRUE(absl::IsDataLoss(decode(3, 2))) << "more than was sent";
  EXPECT_TRUE(absl::IsDataLoss(decode(-1, 1)));
}

TEST(ViewsTest, ChildProcessesProduceTheSame) {
  const auto producer = Producer(Job(kMultiCrop));
  Batch batch = producer->Allocate(kOfFour, NewSlab);
  const auto made = ProduceGuarded(*producer, &batch, 0, 4, GuardLimits{}, base::Clock::Real(),
                                   std::stop_token());
  ASSERT_TRUE(made.ok()) << made.status();
  ExpectSame(batch, Produced(*producer));
}

TEST(ViewsTest, NothingIsLeftToTheTrainer) {
  for (const std::vector<api::View>& views :
       {std::vector<api::View>{{"image", 2}}, std::vector<api::View>{{"local", 3}}}) {
    const api::HeteroTrainingJob job = Job(views);
    const auto producer = Producer(job);
    EXPECT_EQ(producer->cut(job::Split::kTrain).entries(),
              static_cast<int32_t>(job.spec.pipeline.size()));
    const auto cuts = AllowedCuts(job.spec.pipeline, *producer);
    ASSERT_TRUE(cuts.ok()) << cuts.status();
    EXPECT_EQ(*cuts, std::vector<int32_t>{0});
    Ticket half = kOfFour;
    half.left_to_trainer = 1;
    EXPECT_FALSE(producer->Check(half).ok());
    const std::vector<CutCost> costs =
        MeasureCuts(*cuts, *producer, std::chrono::milliseconds(10), base::Clock::Real());
    EXPECT_EQ(DescribePlacement(job.spec.pipeline, *producer, costs, {0, "so"}, 1).size(),
              job.spec.pipeline.size());
  }
}

TEST(ViewsTest, ValidationHasOneImage) {
  api::HeteroTrainingJob job = Job(kMultiCrop);
  job.spec.dataset.validation = static_cast<const api::DatasetSource&>(job.spec.dataset);
  const auto producer = Producer(job);
  Ticket ticket = kOfFour;
  ticket.split = job::Split::kValidation;
  const Batch batch = Produced(*producer, ticket);
  EXPECT_EQ(batch.views, 1);
  EXPECT_EQ(batch.shape, (api::ImageShape{8, 8, 3}));
  EXPECT_FALSE(batch.fields.has_value());
  EXPECT_TRUE(producer->CheckBatch(batch).ok()) << producer->CheckBatch(batch);
}

TEST(ViewsTest, ADumpHasThemByTheirNames) {
  const auto producer = Producer(Job(kMultiCrop));
  const Batch batch = Produced(*producer);
  testing::TemporaryFolder folder;
  const auto dump = StreamDump::Create(folder.path());
  ASSERT_TRUE(dump.ok() && (*dump)->Write(batch).ok());
  const auto file = ReadSafetensors(folder / "rank0-step000000.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tensors.at("images").shape, (std::vector<int64_t>{4, 2, 8, 8, 3}));
  EXPECT_EQ(file->tensors.at("label").type, TensorType::kInt64);
  EXPECT_EQ(file->tensors.at("local").type, TensorType::kUint8);
  EXPECT_EQ(file->tensors.at("local").shape, (std::vector<int64_t>{4, 3, 4, 4, 3}));
  EXPECT_EQ(file->tensors.at("alone").shape, (std::vector<int64_t>{4, 4, 4, 3}));
  EXPECT_EQ(file->tensors.at("local").data, batch.fields->back().bytes);
}

TEST(ViewsTest, WhatIsWrongWithAViewNamesIt) {
  api::HeteroTrainingJob job = Job({{"local", 1}});
  api::OperatorSpec normalize;
  normalize.op = api::OperatorKind::kNormalize;
  normalize.views = {"local"};
  job.spec.pipeline.insert(job.spec.pipeline.begin() + 1, normalize);
  const auto producer = SampleProducer::Create(job);
  EXPECT_THAT(std::string(producer.status().message()),
              HasSubstr("view local: spec.pipeline[2] (RandomResizedCrop) takes uint8 pictures"));
}

}  // namespace
}  // namespace hetero::feed
