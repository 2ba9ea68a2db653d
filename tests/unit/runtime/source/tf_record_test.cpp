#include "runtime/source/tf_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tests/support/paths.h"
#include "tests/unit/runtime/source/dataset_files.h"

namespace hetero::source {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kFile = "pictures-00000-of-00002";

// What TensorFlow wrote (tests/golden/make_datasets.py), to be changed.
class TfRecordTest : public ::testing::Test {
 protected:
  TfRecordTest() : content_(testing::ReadFileOrDie(Golden() + "/" + kFile)) {
    source_.fields.label.offset = -1;
  }
  static std::string Golden() { return testing::SourceDir() + "/tests/golden/datasets/tf_record"; }
  absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& content,
                                                const api::Label& label = {}) {
    folder_.Write(kFile, std::string_view(content));
    api::DatasetSource source = source_;
    source.uri = folder_.Source().uri;
    return OpenDataset(source, job::Split::kTrain, 0, label);
  }
  std::string Error(const std::string& content, const api::Label& label = {}) {
    return std::string(Open(content, label).status().message());
  }
  std::string ReadError(const Dataset& dataset, int64_t id) {
    RawSample sample;
    const absl::Status read = dataset.Read(id, &sample);
    EXPECT_TRUE(absl::IsDataLoss(read)) << read;
    return std::string(read.message());
  }
  template <typename T>
  std::vector<T> Numbers(const Dataset& dataset, int64_t id) {
    RawSample sample;
    const absl::Status read = dataset.Read(id, &sample);
    EXPECT_TRUE(read.ok()) << read;
    std::vector<T> numbers(sample.fields.size() / sizeof(T));
    std::memcpy(numbers.data(), sample.fields.data(), sample.fields.size());
    return numbers;
  }
  // The length of the first record, as the file has it.
  size_t FirstLength() const {
    uint64_t length = 0;
    std::memcpy(&length, content_.data(), sizeof length);
    return length;
  }

  const std::string content_;
  DatasetFolder folder_;
  api::DatasetSource source_;
};

TEST_F(TfRecordTest, NumbersOfAnExampleAreLabels) {
  source_.fields.label = {.field = "box"};
  auto dataset = Open(content_, {api::LabelType::kFloat32, {2, 2}});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(Numbers<float>(**dataset, 4), ElementsAre(1, -1, 0.25, 1e9));
  source_.fields.label = {.field = "tags"};
  dataset = Open(content_, {api::LabelType::kInt64, {2}});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(Numbers<int64_t>(**dataset, 4), ElementsAre(-1, int64_t{1} << 40));
  EXPECT_EQ((*dataset)->classes(), 0);
  EXPECT_THAT(Error(content_, {api::LabelType::kInt64, {3}}),
              AllOf(HasSubstr("tags has 2 numbers, not 3")));
  EXPECT_THAT(Error(content_, {api::LabelType::kFloat32, {2}}), HasSubstr("tags is no float"));
}

TEST_F(TfRecordTest, AFieldThatIsNotThereIsNamedWithThoseThatAre) {
  source_.fields.image = "image/jpeg";
  EXPECT_THAT(Error(content_),
              AllOf(HasSubstr(kFile + ": byte 12: the first record"), HasSubstr("image/jpeg"),
                    HasSubstr("image/encoded (bytes)"), HasSubstr("box (float)"),
                    HasSubstr("empty (empty)"), HasSubstr("dataset.fields.image")));
  source_.fields = {};
  source_.fields.label.field = "image/filename";
  EXPECT_THAT(Error(content_), HasSubstr("no int64"));
  source_.fields.label.field = "tags";
  EXPECT_THAT(Error(content_), HasSubstr("tags has 2 numbers"));
  source_.fields.label.field = "empty";
  EXPECT_THAT(Error(content_), HasSubstr("dataset.fields.label.field"));
}

TEST_F(TfRecordTest, ADamagedRecordIsABadSample) {
  std::string damaged = content_;
  damaged[12 + FirstLength() / 2] ^= 4;
  const auto dataset = Open(damaged);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 7);
  EXPECT_THAT(ReadError(**dataset, 0),
              AllOf(HasSubstr(kFile + ": byte 12"), HasSubstr("checksum")));
  RawSample sample;
  EXPECT_TRUE((*dataset)->Read(1, &sample).ok());
}

TEST_F(TfRecordTest, AFileThatIsCutShortOrHasABadLength) {
  EXPECT_THAT(Error(content_.substr(0, content_.size() - 1)), HasSubstr("cut short"));
  const size_t second = 16 + FirstLength();
  EXPECT_THAT(Error(content_.substr(0, second + 5)),
              AllOf(HasSubstr("byte " + std::to_string(second)), HasSubstr("header")));
  std::string damaged = content_;
  damaged[second] ^= 1;
  EXPECT_THAT(Error(damaged),
              AllOf(HasSubstr("byte " + std::to_string(second)), HasSubstr("begins no record")));
  source_.format = api::DatasetFormat::kTfRecord;
  EXPECT_THAT(Error(std::string(100, 'x')), HasSubstr("is this a TFRecord file?"));
  EXPECT_THAT(Error("\x1f\x8b" + content_), HasSubstr("gunzip"));
}

TEST_F(TfRecordTest, DeclaredClassesAreNotCounted) {
  source_.classes = 1;
  const auto dataset = Open(content_);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->classes(), 1);
  RawSample sample;
  EXPECT_TRUE((*dataset)->Read(3, &sample).ok());
  EXPECT_THAT(ReadError(**dataset, 4), HasSubstr("label 1 is not in [0, 1)"));
  source_ = {};  // they begin at 1
  EXPECT_EQ((*Open(content_))->classes(), 3);
}

TEST_F(TfRecordTest, ShardsAreInTheOrderOfTheirNames) {
  std::filesystem::copy(Golden() + "/pictures-00001-of-00002",
                        folder_.path() + "/pictures-00001-of-00002");
  const auto dataset = Open(content_);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 12);
  EXPECT_THAT((*dataset)->Describe(7), HasSubstr("pictures-00001-of-00002: byte 12"));
}

TEST(TfRecordNameTest, FilesOfRecordsAreTold) {
  for (const char* name : {"a.tfrecord", "a/b.tfrecords", "A.TFRecord", "train.tfrec",
                           "train-00000-of-01024", "set.tfrecord-00000-of-00002"}) {
    EXPECT_TRUE(IsTfRecordName(name)) << name;
  }
  for (const char* name : {"a.tar", "tfrecord/README.md", "train-of-1", "-of-00001", "a-1-of-b"}) {
    EXPECT_FALSE(IsTfRecordName(name)) << name;
  }
}

}  // namespace
}  // namespace hetero::source
