#include "runtime/feed/wire/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <random>
#include <string>

#include "base/crc32c.h"
#include "counting_producer.h"
#include "hetero/v1/feed.pb.h"
#include "runtime/feed/wire/frame_reader.h"

namespace hetero::feed {
namespace {

const Ticket kTicket{.id = 4,
                     .generation = 2,
                     .rank = 1,
                     .split = job::Split::kValidation,
                     .epoch = 3,
                     .step = 9,
                     .slots = {2, 5}};

std::unique_ptr<Batch> MakeBatch() {
  const CountingProducer producer;
  auto batch = std::make_unique<Batch>(producer.Allocate(kTicket, NewSlab));
  for (int64_t i = 0; i < kTicket.slots.count; ++i) {
    std::optional<BadSample> bad;
    EXPECT_TRUE(producer.Produce(batch.get(), i, &bad).ok());
    if (bad.has_value()) batch->bad_samples.push_back(*bad);
  }
  return batch;
}

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  return bytes;
}

// In slices of `part` bytes, as a network would cut it.
grpc::ByteBuffer Buffer(const std::string& bytes, size_t part = 7) {
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; i < bytes.size(); i += part) slices.emplace_back(bytes.substr(i, part));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

TEST(MessagesTest, BatchSurvivesTheTrip) {
  const std::unique_ptr<Batch> sent = MakeBatch();
  std::unique_ptr<Batch> same = MakeBatch();
  same->work_seconds = 0.5;
  same->cpu_seconds = 1.5;
  same->read_seconds = 0.25;
  same->queued_seconds = 0.125;
  absl::StatusOr<Frame> frame = DecodeFrame(Buffer(Bytes(EncodeBatch(std::move(same)))));
  ASSERT_TRUE(frame.ok()) << frame.status();
  ASSERT_EQ(frame->kind, Frame::Kind::kBatch);
  EXPECT_EQ(frame->batch->work_seconds, 0.5);
  EXPECT_EQ(frame->batch->cpu_seconds, 1.5);
  EXPECT_EQ(frame->batch->read_seconds, 0.25);
  EXPECT_EQ(frame->batch->queued_seconds, 0.125);
  EXPECT_EQ(frame->ticket, kTicket);
  EXPECT_EQ(frame->batch->shape, sent->shape);
  EXPECT_EQ(frame->batch->labels, sent->labels);
  EXPECT_EQ(frame->batch->sample_ids, sent->sample_ids);
  EXPECT_EQ(frame->batch->crcs, sent->crcs);
  ASSERT_EQ(frame->batch->bad_samples.size(), 1u);
  EXPECT_EQ(frame->batch->bad_samples[0].slot, CountingProducer::kBadSlot);
  ASSERT_EQ(frame->batch->images.size(), sent->images.size());
  EXPECT_EQ(
      std::string(frame->batch->images.data(), frame->batch->images.data() + sent->images.size()),
      std::string(sent->images.data(), sent->images.data() + sent->images.size()));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(frame->batch->images.data()) % 64, 0u);
}

TEST(MessagesTest, ConnectionTakesFramesInWhateverPiecesTheyCome) {
  const std::string bytes = Bytes(EncodeStarted(kTicket)) + Bytes(EncodeBatch(MakeBatch())) +
                            Bytes(EncodeFailed(kTicket, absl::InternalError("no"))) +
                            Bytes(EncodeBatch(MakeBatch()));
  const std::unique_ptr<Batch> sent = MakeBatch();
  for (const size_t most : {size_t{1}, size_t{7}, size_t{100}, bytes.size()}) {
    FrameReader reader(NoMemory);
    std::vector<Frame> frames;
    for (size_t at = 0; at < bytes.size();) {
      const FrameReader::Room room = reader.room();
      ASSERT_GT(room.size, 0u);
      const size_t some = std::min({most, room.size, bytes.size() - at});
      std::copy_n(bytes.data() + at, some, room.to);
      at += some;
      absl::StatusOr<std::optional<Frame>> frame = reader.Take(some, bytes.size() - at);
      ASSERT_TRUE(frame.ok()) << frame.status();
      if (frame->has_value()) frames.push_back(**std::move(frame));
    }
    ASSERT_EQ(frames.size(), 4u);
    EXPECT_EQ(frames[0].kind, Frame::Kind::kStarted);
    EXPECT_EQ(frames[2].error.message(), "no");
    for (const size_t i : {1, 3}) {
      ASSERT_EQ(frames[i].kind, Frame::Kind::kBatch) << frames[i].error;
      const Slab& images = frames[i].batch->images;
      ASSERT_EQ(images.size(), sent->images.size());
      EXPECT_TRUE(std::equal(images.data(), images.data() + images.size(), sent->images.data()));
      EXPECT_EQ(frames[i].batch->labels, sent->labels);
    }
  }
}

TEST(MessagesTest, ConnectionTakesMemoryForAHeaderAsItComes) {
  FrameReader reader(NoMemory);
  const uint32_t size = 60 << 20;
  const uint8_t prefix[8] = {0, 0, size >> 16 & 255, size >> 24};
  std::copy_n(prefix, sizeof prefix, reader.room().to);
  ASSERT_TRUE(reader.Take(sizeof prefix, size).ok());
  EXPECT_LE(reader.room().size, 1 << 20);
}

TEST(MessagesTest, FatalSamplesAndGuardsSurviveTheTripBothWays) {
  const FatalSample fatal{job::Split::kValidation, 17, "17.jpg: signal 11"};
  std::unique_ptr<Batch> batch = MakeBatch();
  batch->ticket.guarded = true;
  batch->fatal = {fatal};
  absl::StatusOr<Frame> frame = DecodeFrame(EncodeBatch(std::move(batch)));
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_TRUE(frame->ticket.guarded);
  EXPECT_EQ(frame->batch->fatal, std::vector<FatalSample>{fatal});
  v1::TicketRequest offers;
  const auto request = DecodeRequest(EncodeRequest({.fatal = {fatal}}), &offers);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->fatal, std::vector<FatalSample>{fatal});
}

TEST(MessagesTest, TensorBytesAreBorrowed) {
  std::unique_ptr<Batch> batch = MakeBatch();
  const uint8_t* data = batch->images.data();
  const size_t size = static_cast<size_t>(batch->images.size());
  const grpc::ByteBuffer buffer = EncodeBatch(std::move(batch));
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(buffer.Dump(&slices).ok());
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[1].begin(), data);
  EXPECT_EQ(slices[1].size(), size);
}

TEST(MessagesTest, StartedFailedAndRequestsSurviveTheTrip) {
  EXPECT_EQ(DecodeFrame(EncodeStarted(kTicket))->ticket, kTicket);
  const absl::Status error = absl::NotFoundError("no file");
  EXPECT_EQ(DecodeFrame(EncodeFailed(kTicket, error))->error, error);
  v1::TicketRequest offers, received;
  offers.set_region_token(9);
  const absl::StatusOr<TicketRequest> request =
      DecodeRequest(EncodeRequest({{kTicket}, {7, 8}}, &offers), &received);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->issue, std::vector<Ticket>{kTicket});
  EXPECT_EQ(request->cancel, (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(received.region_token(), 9u);
}

// A frame of a worker that does not keep to what this code would write.
std::string FrameOf(const v1::FrameHeader& header, const std::string& tensor) {
  const std::string text = header.SerializeAsString();
  std::string bytes;
  for (const size_t number : {text.size(), size_t{base::Crc32c(text.data(), text.size())}}) {
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(number >> (8 * i)));
  }
  return bytes + text + tensor;
}

v1::FrameHeader HeaderOfOneSample() {
  const std::string pixel(1, '\x2A');
  v1::FrameHeader header;
  header.set_kind(v1::FrameHeader::BATCH);
  header.mutable_ticket()->set_split(v1::TRAIN);
  header.mutable_ticket()->set_count(1);
  header.set_height(1);
  header.set_width(1);
  header.set_channels(1);
  header.add_labels(0);
  header.add_sample_ids(7);
  header.add_sample_crc32c(base::Crc32c(pixel.data(), 1));
  header.set_batch_crc32c(base::Crc32c(pixel.data(), 1));
  return header;
}

TEST(MessagesTest, ConnectionTakesMemoryForAFieldOnce) {
  constexpr size_t kPiece = 1 << 20;
  v1::FrameHeader header = HeaderOfOneSample();
  header.clear_labels();
  v1::FieldSet::Field* field = header.mutable_fields()->add_fields();
  field->set_name("local");
  field->set_type(v1::UINT8);
  field->add_shape(3 * kPiece);
  const std::string bytes = FrameOf(header, "\x2A");
  FrameReader reader(NoMemory);
  for (size_t at = 0; at < bytes.size();) {
    const size_t some = std::min(reader.room().size, bytes.size() - at);
    std::copy_n(bytes.data() + at, some, reader.room().to);
    at += some;
    ASSERT_TRUE(reader.Take(some, 3 * kPiece + bytes.size() - at).ok());
  }
  const uint8_t* const first = reader.room().to;
  for (size_t piece = 0; piece < 3; ++piece) {
    ASSERT_EQ(reader.room().size, kPiece);
    EXPECT_EQ(reader.room().to, first + piece * kPiece);
    std::fill_n(reader.room().to, kPiece, uint8_t{1});
    ASSERT_TRUE(reader.Take(kPiece, (2 - piece) * kPiece).ok());
  }
}

// A rank passes them on to its head, which takes 4 MiB: with one of 5 MB it was never heard again.
TEST(MessagesTest, HoweverMuchAWorkerSaysItIsCutWhereItIsRead) {
  const std::string endless(5'000'000, 'x');
  v1::FrameHeader header = HeaderOfOneSample();
  header.add_bad_samples()->set_reason(endless);
  header.add_fatal()->set_reason(endless);
  const absl::StatusOr<Frame> batch = DecodeFrame(Buffer(FrameOf(header, "\x2A"), 1 << 20));
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_EQ(batch->kind, Frame::Kind::kBatch) << batch->error;
  EXPECT_EQ(batch->batch->bad_samples.at(0).reason.size(), 4096u);
  EXPECT_EQ(batch->batch->fatal.at(0).reason.size(), 4096u);
  header.set_kind(v1::FrameHeader::FAILED);
  header.set_error(endless);
  const absl::StatusOr<Frame> failed = DecodeFrame(Buffer(FrameOf(header, ""), 1 << 20));
  ASSERT_TRUE(failed.ok()) << failed.status();
  EXPECT_EQ(failed->error.message().size(), 4096u);

  header = HeaderOfOneSample();
  for (int id = 0; id < 2; ++id) header.add_bad_samples()->set_sample_id(id);
  EXPECT_FALSE(DecodeFrame(Buffer(FrameOf(header, "\x2A"))).ok()) << "more than it has samples";
}

TEST(MessagesTest, WordsThatAreNotUtf8DoNotCostTheFrame) {
  const std::string name = "train/caf\xE9.jpg";  // Latin-1
  const std::string shown = "train/caf\xEF\xBF\xBD.jpg";
  const absl::StatusOr<Frame> failed =
      DecodeFrame(EncodeFailed(kTicket, absl::NotFoundError(name)));
  ASSERT_TRUE(failed.ok()) << failed.status();
  EXPECT_EQ(failed->error, absl::NotFoundError(shown));

  std::unique_ptr<Batch> batch = MakeBatch();
  batch->bad_samples[0].reason = name;
  const absl::StatusOr<Frame> sent = DecodeFrame(EncodeBatch(std::move(batch)));
  ASSERT_TRUE(sent.ok()) << sent.status();
  ASSERT_EQ(sent->kind, Frame::Kind::kBatch);
  EXPECT_EQ(sent->batch->bad_samples[0].reason, shown);

  // Cut where the limit is, but in no character.
  const std::string long_text = std::string(4095, 'x') + "\xE2\x82\xAC";
  const absl::StatusOr<Frame> cut =
      DecodeFrame(EncodeFailed(kTicket, absl::NotFoundError(long_text)));
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->error.message(), std::string(4095, 'x'));
}

TEST(MessagesTest, JoinedFramesComeApartInOrder) {
  const grpc::ByteBuffer joined = JoinFrames({EncodeStarted(kTicket), EncodeBatch(MakeBatch()),
                                              EncodeFailed(kTicket, absl::AbortedError("x"))});
  std::vector<Frame::Kind> kinds;
  EXPECT_TRUE(DecodeFrames(joined, NoMemory, [&](Frame frame) {
                EXPECT_EQ(frame.ticket, kTicket);
                kinds.push_back(frame.kind);
              }).ok());
  EXPECT_EQ(kinds, (std::vector<Frame::Kind>{Frame::Kind::kStarted, Frame::Kind::kBatch,
                                             Frame::Kind::kFailed}));
}

TEST(MessagesTest, ABatchForWhichThereIsNoMemoryFailsAndNothingBehindItIsRead) {
  const grpc::ByteBuffer joined =
      JoinFrames({EncodeStarted(kTicket), EncodeBatch(MakeBatch()), EncodeStarted(kTicket)});
  const OpenMemory none = [](const v1::FrameHeader&, int64_t) -> absl::StatusOr<NamedMemory> {
    throw std::bad_alloc();
  };
  std::vector<Frame> frames;
  const absl::Status status =
      DecodeFrames(joined, none, [&](Frame frame) { frames.push_back(std::move(frame)); });
  EXPECT_EQ(status,
            absl::ResourceExhaustedError("no memory in the trainer for the batch of ticket 4"));
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[1].kind, Frame::Kind::kFailed);
  EXPECT_EQ(frames[1].ticket, kTicket);
  EXPECT_EQ(frames[1].error, absl::InternalError(status.message())) << "no worker lacked memory";
}

TEST(MessagesTest, EveryFlippedBitIsFound) {
  const std::string good = Bytes(EncodeBatch(MakeBatch()));
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string damaged = good;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const absl::StatusOr<Frame> frame = DecodeFrame(Buffer(damaged, 64));
    if (frame.ok()) {
      EXPECT_EQ(frame->kind, Frame::Kind::kFailed) << bit;
      EXPECT_TRUE(absl::IsDataLoss(frame->error)) << bit;
      EXPECT_EQ(frame->ticket, kTicket) << bit;
    }
  }
}

TEST(MessagesTest, TruncatedExtendedAndRandomFramesAreErrors) {
  const std::string good = Bytes(EncodeBatch(MakeBatch()));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(DecodeFrame(Buffer(good.substr(0, size))).ok()) << size;
  }
  EXPECT_FALSE(DecodeFrame(Buffer(good + "x")).ok());
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string garbage(random() % 200, '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    EXPECT_FALSE(DecodeFrame(Buffer(garbage)).ok());
    v1::TicketRequest offers;
    DecodeRequest(Buffer(garbage), &offers).IgnoreError();
  }
}

}  // namespace
}  // namespace hetero::feed
