#include "runtime/source/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "runtime/source/dataset.h"
#include "runtime/source/gzip.h"
#include "runtime/storage/open_store.h"
#include "tests/unit/runtime/source/dataset_files.h"

namespace hetero::source {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Three pictures of 2 x 3 pixels, as the format's page lays them out.
const Bytes kImages = {0,  0,  8,  3,  0,  0,  0,  3,  0,  0,  0,  2,  0,  0,  0,  3,  10,
                       11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 30, 31, 32, 33, 34, 35};
const Bytes kLabels = {0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 4};

class IdxTest : public ::testing::Test {
 protected:
  void WriteTrain(const Bytes& images, const Bytes& labels, const std::string& ending = "") {
    folder_.Write("train-images-idx3-ubyte" + ending, images);
    folder_.Write("train-labels-idx1-ubyte" + ending, labels);
  }

  absl::StatusOr<std::unique_ptr<Dataset>> Open(api::DatasetSource source,
                                                job::Split split = job::Split::kTrain) {
    return OpenDataset(source, split, 0);
  }

  std::string OpenError(absl::StatusCode code, job::Split split = job::Split::kTrain) {
    const auto dataset = Open(folder_.Source(), split);
    EXPECT_EQ(dataset.status().code(), code) << dataset.status();
    return std::string(dataset.status().message());
  }

  DatasetFolder folder_;
};

TEST_F(IdxTest, ReadsPlainFiles) {
  WriteTrain(kImages, kLabels);
  const auto dataset = Open(folder_.Source());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 3);
  EXPECT_EQ((*dataset)->classes(), 8);
  EXPECT_EQ((*dataset)->image(), (api::ImageShape{2, 3, 1}));
  EXPECT_EQ((*dataset)->ClassName(7), "7");
  EXPECT_EQ((*dataset)->Describe(2), folder_ / "train-images-idx3-ubyte" + ": record 2");

  RawSample sample;
  ASSERT_TRUE((*dataset)->Read(1, &sample).ok());
  EXPECT_EQ(sample.encoding, Encoding::kRaw);
  EXPECT_EQ(sample.shape, (api::ImageShape{2, 3, 1}));
  EXPECT_EQ(sample.label, 0);
  EXPECT_THAT(sample.bytes, ElementsAre(20, 21, 22, 23, 24, 25));
  ASSERT_TRUE((*dataset)->Read(2, &sample).ok());
  EXPECT_EQ(sample.label, 4);
  EXPECT_THAT(sample.bytes, ElementsAre(30, 31, 32, 33, 34, 35));
  EXPECT_EQ((*dataset)->Read(3, &sample).code(), absl::StatusCode::kOutOfRange);
}

TEST_F(IdxTest, GzippedAndPlainCopiesAreTheSameDataset) {
  WriteTrain(StoredGzip(kImages), StoredGzip(kLabels), ".gz");
  DatasetFolder plain;
  plain.Write("train-images.idx3-ubyte", kImages);
  plain.Write("train-labels.idx1-ubyte", kLabels);
  const auto a = Open(folder_.Source());
  const auto b = Open(plain.Source());
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ((*a)->fingerprint(), (*b)->fingerprint());
  EXPECT_EQ((*a)->fingerprint().size(), 16u);
  RawSample sample;
  ASSERT_TRUE((*a)->Read(0, &sample).ok());
  EXPECT_EQ(sample.label, 7);
  EXPECT_THAT(sample.bytes, ElementsAre(10, 11, 12, 13, 14, 15));
}

TEST_F(IdxTest, AStoreWithTheSameFilesIsTheSameDataset) {
  WriteTrain(StoredGzip(kImages), StoredGzip(kLabels), ".gz");
  const auto store = *storage::OpenStore("file://" + folder_.path());
  const auto files = Open(folder_.Source());
  const auto objects = OpenIdx(store->uri(), store.get(), folder_.Source(), job::Split::kTrain);
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_EQ((*objects)->fingerprint(), (*files)->fingerprint());
  EXPECT_EQ((*objects)->Describe(2), "file://" + (*files)->Describe(2));
  const auto none = OpenIdx(store->uri(), store.get(), folder_.Source(), job::Split::kValidation);
  EXPECT_TRUE(absl::IsNotFound(none.status())) << none.status();
  EXPECT_THAT(std::string(none.status().message()), ::testing::HasSubstr("t10k-images"));
}

TEST_F(IdxTest, ReadsGzipFilesOfSeveralMembers) {
  const Bytes head(kImages.begin(), kImages.begin() + 20);
  const Bytes tail(kImages.begin() + 20, kImages.end());
  WriteTrain(Join(StoredGzip(head), StoredGzip(tail)), StoredGzip(kLabels), ".gz");
  const auto dataset = Open(folder_.Source());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  RawSample sample;
  ASSERT_TRUE((*dataset)->Read(0, &sample).ok());
  EXPECT_THAT(sample.bytes, ElementsAre(10, 11, 12, 13, 14, 15));
}

TEST_F(IdxTest, ValidationReadsT10k) {
  WriteTrain(kImages, kLabels);
  folder_.Write("t10k-images-idx3-ubyte",
                Bytes{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 5, 6});
  folder_.Write("t10k-labels-idx1-ubyte", Bytes{0, 0, 8, 1, 0, 0, 0, 1, 9});
  const auto dataset = Open(folder_.Source(), job::Split::kValidation);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 1);
  EXPECT_EQ((*dataset)->classes(), 10);
  const auto train = Open(folder_.Source());
  ASSERT_TRUE(train.ok());
  EXPECT_NE((*dataset)->fingerprint(), (*train)->fingerprint());
}

TEST_F(IdxTest, MissingFilesAreNamedInAllSpellings) {
  WriteTrain(kImages, kLabels);
  EXPECT_THAT(OpenError(absl::StatusCode::kNotFound, job::Split::kValidation),
              AllOf(HasSubstr(folder_.path()), HasSubstr("t10k-images-idx3-ubyte,"),
                    HasSubstr("t10k-images-idx3-ubyte.gz"), HasSubstr("t10k-images.idx3-ubyte and"),
                    HasSubstr("t10k-images.idx3-ubyte.gz")));
}

TEST_F(IdxTest, SwappedFilesAreToldByTheirMagic) {
  WriteTrain(kLabels, kImages);
  const std::string short_message = OpenError(absl::StatusCode::kDataLoss);
  EXPECT_THAT(short_message,
              HasSubstr("11 bytes, but the header of an IDX images file alone has 16"));
  WriteTrain(kImages, kImages);
  EXPECT_THAT(OpenError(absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("train-labels-idx1-ubyte: byte 0: magic 0x00000803"),
                    HasSubstr("images"), HasSubstr("expected 0x00000801")));
}

TEST_F(IdxTest, ShortBodyNamesExpectedAndFoundBytes) {
  WriteTrain(Bytes(kImages.begin(), kImages.end() - 4), kLabels);
  EXPECT_THAT(OpenError(absl::StatusCode::kDataLoss),
              AllOf(HasSubstr("train-images-idx3-ubyte: ends at byte 30"),
                    HasSubstr("promises 18 bytes"), HasSubstr("found 14")));
}

TEST_F(IdxTest, TrailingBytesAreAnError) {
  WriteTrain(kImages, Join(kLabels, {1, 2}));
  EXPECT_THAT(OpenError(absl::StatusCode::kDataLoss),
              HasSubstr("train-labels-idx1-ubyte: 2 trailing bytes from byte 11"));
}

TEST_F(IdxTest, CountsMustAgree) {
  WriteTrain(kImages, {0, 0, 8, 1, 0, 0, 0, 2, 7, 0});
  EXPECT_THAT(OpenError(absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("3 images"), HasSubstr("2 labels")));
}

TEST_F(IdxTest, HugeHeaderCountsDoNotOverflow) {
  Bytes images = kImages;
  for (int i = 4; i < 8; ++i) images[i] = 0xff;
  WriteTrain(images, kLabels);
  EXPECT_THAT(OpenError(absl::StatusCode::kDataLoss), HasSubstr("promises 25769803770 bytes"));
  for (int i = 8; i < 16; ++i) images[i] = 0xff;
  WriteTrain(images, kLabels);
  EXPECT_THAT(OpenError(absl::StatusCode::kInvalidArgument), HasSubstr("4294967295x4294967295"));
}

TEST_F(IdxTest, ASparseFileOf300GigabytesIsNamedAndNotRead) {
  WriteTrain(kImages, kLabels);
  const std::string path = folder_ / "train-images-idx3-ubyte";
  ASSERT_EQ(truncate(path.c_str(), int64_t{300} << 30), 0);
  EXPECT_THAT(OpenError(absl::StatusCode::kDataLoss),
              AllOf(HasSubstr(path), HasSubstr("322122547200 bytes")));
}

TEST_F(IdxTest, AGzipFileThatUnpacksWithoutEndIsStoppedAtTheLimit) {
  const Bytes packed = StoredGzip(kImages);
  Bytes out;
  EXPECT_TRUE(Gunzip("a.gz", packed, static_cast<int64_t>(kImages.size()), &out).ok());
  EXPECT_EQ(out, kImages);
  const absl::Status bomb = Gunzip("a.gz", packed, static_cast<int64_t>(kImages.size()) - 1, &out);
  EXPECT_TRUE(absl::IsDataLoss(bomb)) << bomb;
  EXPECT_THAT(std::string(bomb.message()), HasSubstr("a.gz: holds more than"));
  EXPECT_LE(out.size(), kImages.size());
}

TEST_F(IdxTest, TruncatedGzipNamesTheByte) {
  Bytes packed = StoredGzip(kImages);
  packed.resize(packed.size() - 10);
  WriteTrain(packed, StoredGzip(kLabels), ".gz");
  EXPECT_THAT(OpenError(absl::StatusCode::kDataLoss),
              AllOf(HasSubstr("train-images-idx3-ubyte.gz"),
                    HasSubstr("cut short at byte " + std::to_string(packed.size()))));
}

TEST_F(IdxTest, DamagedGzipAndBytesAfterItAreErrors) {
  Bytes packed = StoredGzip(kImages);
  packed[20] ^= 1;  // the CRC no longer fits
  WriteTrain(packed, StoredGzip(kLabels), ".gz");
  EXPECT_THAT(OpenError(absl::StatusCode::kDataLoss), HasSubstr("incorrect data check"));
  WriteTrain(Join(StoredGzip(kImages), {1, 2, 3}), StoredGzip(kLabels), ".gz");
  EXPECT_THAT(OpenError(absl::StatusCode::kDataLoss), HasSubstr("3 bytes after the gzip data"));
  WriteTrain(Join(StoredGzip(kImages), {0x1f}), StoredGzip(kLabels), ".gz");
  EXPECT_THAT(OpenError(absl::StatusCode::kDataLoss), HasSubstr("1 bytes after the gzip data"));
}

TEST_F(IdxTest, LabelOutsideTheDeclaredClassesIsABadSample) {
  WriteTrain(kImages, kLabels);
  api::DatasetSource source = folder_.Source();
  source.classes = 5;
  const auto dataset = Open(source);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->classes(), 5);
  RawSample sample;
  const absl::Status status = (*dataset)->Read(0, &sample);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("train-labels-idx1-ubyte: record 0: label 7 is not in [0, 5)"));
  EXPECT_TRUE((*dataset)->Read(1, &sample).ok());
}

TEST_F(IdxTest, DeclaredSamplesAndImageAreChecked) {
  WriteTrain(kImages, kLabels);
  api::DatasetSource source = folder_.Source();
  source.samples = 4;
  EXPECT_THAT(std::string(Open(source).status().message()),
              HasSubstr("declares samples 4 but the data has 3"));
  source.samples = 3;
  source.image = api::ImageShape{2, 3, 3};
  EXPECT_THAT(std::string(Open(source).status().message()),
              HasSubstr("declares image [2, 3, 3] but the data has [2, 3, 1]"));
  source.image->channels = 1;
  EXPECT_TRUE(Open(source).ok());
}

TEST_F(IdxTest, ManyThreadsReadAtOnce) {
  WriteTrain(kImages, kLabels);
  const auto dataset = Open(folder_.Source());
  ASSERT_TRUE(dataset.ok());
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        RawSample sample;
        for (int i = 0; i < 300; ++i) {
          const int id = i % 3;
          if (!(*dataset)->Read(id, &sample).ok() || sample.bytes[0] != 10 * (id + 1)) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace hetero::source
