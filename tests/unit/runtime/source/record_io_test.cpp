#include "runtime/source/record_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/paths.h"
#include "tests/unit/runtime/source/dataset_files.h"

namespace hetero::source {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What MXNet wrote (tests/golden/make_datasets.py), to be changed. Its second record, at byte 280,
// holds the magic word and so has two parts, the second at byte 364.
class RecordIoTest : public ::testing::Test {
 protected:
  RecordIoTest()
      : content_(testing::ReadFileOrDie(testing::SourceDir() +
                                        "/tests/golden/datasets/record_io/pictures.rec")) {}
  absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& content,
                                                const api::Label& label = {}) {
    folder_.Write("a.rec", std::string_view(content));
    api::DatasetSource source = source_;
    source.uri = folder_.Source().uri;
    source.format = api::DatasetFormat::kRecordIo;
    return OpenDataset(source, job::Split::kTrain, 0, label);
  }
  std::string Error(const std::string& content, const api::Label& label = {}) {
    return std::string(Open(content, label).status().message());
  }
  std::string With(size_t at, const std::string& bytes) const {
    std::string content = content_;
    return content.replace(at, bytes.size(), bytes);
  }
  std::string ReadError(const Dataset& dataset, int64_t id) {
    RawSample sample;
    const absl::Status read = dataset.Read(id, &sample);
    EXPECT_TRUE(absl::IsDataLoss(read)) << read;
    return std::string(read.message());
  }

  const std::string content_;
  DatasetFolder folder_;
  api::DatasetSource source_;
};

TEST_F(RecordIoTest, SeveralLabelsAreNumbers) {
  const std::string lists = testing::ReadFileOrDie(
      testing::SourceDir() + "/tests/golden/datasets/record_io_lists/pictures.rec");
  const auto dataset = Open(lists, {api::LabelType::kFloat32, {2}});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 12);
  RawSample sample;
  ASSERT_TRUE((*dataset)->Read(9, &sample).ok());
  float labels[2];
  ASSERT_EQ(sample.fields.size(), sizeof labels);
  std::memcpy(labels, sample.fields.data(), sizeof labels);
  EXPECT_THAT(labels, ElementsAre(2, 0.25));
  EXPECT_EQ(std::string(sample.bytes.begin() + 1, sample.bytes.begin() + 4), "PNG");
  // No record has one: there is no class.
  EXPECT_THAT(Error(lists), HasSubstr("no sample has a label"));
  source_.classes = 3;
  EXPECT_THAT(ReadError(**Open(lists), 0), HasSubstr("has 2 labels; a class is one"));
  source_ = {};
  EXPECT_THAT(ReadError(**Open(content_, {api::LabelType::kFloat32, {2}}), 0),
              HasSubstr("has 1 labels, not 2"));
  EXPECT_THAT(Error(content_, {api::LabelType::kInt64}), HasSubstr("Float32"));
  EXPECT_TRUE(Open(content_, {api::LabelType::kNone}).ok());
}

TEST_F(RecordIoTest, WhatIsCutShortOrDamagedIsNamedWithItsByte) {
  EXPECT_THAT(Error(content_.substr(0, 400)),
              AllOf(HasSubstr("a.rec: byte 364: a record of 232 bytes"), HasSubstr("after 400")));
  EXPECT_THAT(Error(content_.substr(0, 284)), AllOf(HasSubstr("byte 280"), HasSubstr("header")));
  EXPECT_THAT(Error(With(280, "x")), AllOf(HasSubstr("byte 280"), HasSubstr("begins no record")));
  // The second part of a record, in the place of a whole one.
  EXPECT_THAT(Error(content_.substr(364)), HasSubstr("byte 0"));
  // And a first part whose second one is missing.
  EXPECT_THAT(Error(content_.substr(0, 364)), HasSubstr("byte 364"));
  EXPECT_THAT(Error(std::string(100, 'x')), HasSubstr("is this a RecordIO file?"));
}

TEST_F(RecordIoTest, BadRecordsAreBadSamples) {
  const float half = 0.5;
  const std::string fraction(reinterpret_cast<const char*>(&half), sizeof half);
  EXPECT_THAT(ReadError(**Open(With(8 + 4, fraction)), 0),
              AllOf(HasSubstr("a.rec: byte 0"), HasSubstr("label 0.5 is no class")));
  EXPECT_THAT(ReadError(**Open(With(8, "\xff\xff")), 0), HasSubstr("says it has 65535 labels"));
  EXPECT_THAT(ReadError(**Open(With(8 + 24, "GIF8")), 0), HasSubstr("47 49 46 38"));
  source_.classes = 2;
  EXPECT_THAT(ReadError(**Open(content_), 11), HasSubstr("label 2 is not in [0, 2)"));
  source_ = {};
  source_.fields.image = "picture";
  EXPECT_THAT(Error(content_), HasSubstr("label.offset alone"));
  source_ = {};
  source_.fields.label.offset = 7;
  EXPECT_EQ((*Open(content_))->classes(), 10);
}

}  // namespace
}  // namespace hetero::source
