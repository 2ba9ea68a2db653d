// Labels that are no classes: numbers of a format's own, or none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "runtime/source/dataset.h"
#include "tests/unit/runtime/source/dataset_files.h"

namespace hetero::source {
namespace {

using api::LabelType;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Bytes kThreeImages = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 1, 10, 20, 30};
const Bytes kPicture = {0xff, 0xd8, 0xff, 0xe0, 1, 2, 3};

template <typename T>
std::vector<T> As(const std::vector<uint8_t>& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

Bytes OfText(const std::string& text) { return {text.begin(), text.end()}; }

class LabelTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Dataset>> Open(const api::Label& label,
                                                api::DatasetFormat format = {}) {
    api::DatasetSource source = folder_.Source();
    source.format = format;
    return OpenDataset(source, job::Split::kTrain, 0, label);
  }
  std::string OpenError(const api::Label& label, api::DatasetFormat format = {}) {
    return std::string(Open(label, format).status().message());
  }
  // The numbers of sample `id`.
  template <typename T>
  std::vector<T> Read(const Dataset& dataset, int64_t id) {
    RawSample sample;
    EXPECT_TRUE(dataset.Read(id, &sample).ok());
    return As<T>(sample.fields);
  }

  DatasetFolder folder_;
};

TEST_F(LabelTest, NumbersOfAnIdxFileAreReadInTheirTypes) {
  folder_.Write("train-images-idx3-ubyte", kThreeImages);
  // 1, -2; 3, 32767; -32768, 0
  folder_.Write("train-labels-idx2-short", Bytes{0, 0, 11,  2,   0, 0, 0,   3,   0,   0, 0, 2,
                                                 0, 1, 255, 254, 0, 3, 127, 255, 128, 0, 0, 0});
  const auto shorts = Open({LabelType::kInt64, {2}});
  ASSERT_TRUE(shorts.ok()) << shorts.status();
  EXPECT_THAT(Read<int64_t>(**shorts, 0), ElementsAre(1, -2));
  EXPECT_THAT(Read<int64_t>(**shorts, 1), ElementsAre(3, 32767));
  EXPECT_THAT(Read<int64_t>(**shorts, 2), ElementsAre(-32768, 0));
  EXPECT_EQ((*shorts)->classes(), 0);

  // 1.5, -0.25, 3 by IEEE 754
  folder_.Write("train-age-idx1-float", Bytes{0, 0, 13,   1,    0, 0, 0,    3,    0x3f, 0xc0,
                                              0, 0, 0xbe, 0x80, 0, 0, 0x40, 0x40, 0,    0});
  const auto floats = Open({LabelType::kFloat32, {}, "age"});
  ASSERT_TRUE(floats.ok()) << floats.status();
  EXPECT_THAT(Read<float>(**floats, 0), ElementsAre(1.5f));
  EXPECT_THAT(Read<float>(**floats, 1), ElementsAre(-0.25f));
  EXPECT_THAT(Read<float>(**floats, 2), ElementsAre(3.0f));
  EXPECT_NE((*floats)->fingerprint(), (*shorts)->fingerprint());

  const auto none = Open({LabelType::kNone});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(Read<float>(**none, 2), IsEmpty());
}

TEST_F(LabelTest, AnIdxFileOfAnotherShapeTypeOrSizeIsNamed) {
  folder_.Write("train-images-idx3-ubyte", kThreeImages);
  EXPECT_THAT(
      OpenError({LabelType::kFloat32, {2}}),
      AllOf(HasSubstr("no IDX file of dataset.label"), HasSubstr("train-labels-idx2-float")));
  const Bytes three = {0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 1, 7, 8, 9};
  folder_.Write("train-labels-idx2-ubyte", three);
  EXPECT_THAT(OpenError({LabelType::kInt64, {2}}),
              HasSubstr("holds [1] numbers a sample, where dataset.label.shape is [2]"));
  ASSERT_TRUE(Open({LabelType::kInt64, {1}}).ok());
  folder_.Write("train-labels-idx2-ubyte", Bytes{0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 1, 7, 8});
  EXPECT_THAT(OpenError({LabelType::kInt64, {1}}), HasSubstr("ends at byte 14"));
  folder_.Write("train-labels-idx2-ubyte", Bytes{0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 7, 8});
  EXPECT_THAT(OpenError({LabelType::kInt64, {1}}), HasSubstr("different sets"));
  folder_.Write("train-labels-idx2-ubyte", Bytes{0, 0, 13, 2, 0, 0, 0, 3, 0, 0, 0, 1, 7, 8, 9});
  EXPECT_THAT(OpenError({LabelType::kInt64, {1}}), HasSubstr("magic 0x00000d02"));
  folder_.Write("train-labels-idx2-ubyte", Bytes{0, 0, 8});
  EXPECT_THAT(OpenError({LabelType::kInt64, {1}}), HasSubstr("its header alone has 12"));
}

TEST_F(LabelTest, PicturesWithoutLabelsCountWhereverTheyLie) {
  folder_.Write("b.jpg", kPicture);
  folder_.Write("a/z.png", kPicture);
  folder_.Write("a/deep/c.jpeg", kPicture);
  folder_.Write(".hidden/d.jpg", kPicture);
  folder_.Write("notes.txt", OfText("none"));
  const auto dataset = Open({LabelType::kNone}, api::DatasetFormat::kImageFolder);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 3);
  EXPECT_EQ((*dataset)->classes(), 0);
  EXPECT_EQ((*dataset)->Describe(0), folder_ / "b.jpg");
  EXPECT_EQ((*dataset)->Describe(1), folder_ / "a/z.png");
  EXPECT_EQ((*dataset)->Describe(2), folder_ / "a/deep/c.jpeg");
  EXPECT_THAT(Read<float>(**dataset, 0), IsEmpty());
}

TEST_F(LabelTest, NumbersStandBesideThePicturesInMetadata) {
  folder_.Write("b.jpg", kPicture);
  folder_.Write("a/z.png", kPicture);
  folder_.Write("metadata.jsonl",
                OfText(R"({"file_name": "a/z.png", "box": [[1, 2.5], [-3, 1e3]], "n": 7}

{"file_name": "b.jpg", "box": [[0, 0.1], [0, 0]], "n": -9007199254740993, "more": "text"})"));
  const auto boxes = Open({LabelType::kFloat32, {2, 2}, "box"}, api::DatasetFormat::kImageFolder);
  ASSERT_TRUE(boxes.ok()) << boxes.status();
  EXPECT_THAT(Read<float>(**boxes, 0), ElementsAre(0, 0.1f, 0, 0));
  EXPECT_THAT(Read<float>(**boxes, 1), ElementsAre(1, 2.5, -3, 1000));
  const auto whole = Open({LabelType::kInt64, {}, "n"}, api::DatasetFormat::kImageFolder);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(Read<int64_t>(**whole, 0), ElementsAre(-9007199254740993));
  EXPECT_NE((*whole)->fingerprint(), (*boxes)->fingerprint());
}

TEST_F(LabelTest, WhatIsWrongWithMetadataIsNamedWithItsLine) {
  folder_.Write("a.jpg", kPicture);
  folder_.Write("b.jpg", kPicture);
  const api::Label label = {LabelType::kInt64, {2}};
  const auto error = [&](const std::string& text) {
    folder_.Write("metadata.jsonl", OfText(text));
    return OpenError(label, api::DatasetFormat::kImageFolder);
  };
  EXPECT_THAT(OpenError(label, api::DatasetFormat::kImageFolder),
              AllOf(HasSubstr("metadata.jsonl: not there"), HasSubstr("\"label\"")));
  const std::string a = R"({"file_name": "a.jpg", "label": [1, 2]})";
  EXPECT_THAT(error(a), HasSubstr("has no line for b.jpg, one of 1 pictures without a label"));
  EXPECT_THAT(error(a + "\nno json"), HasSubstr("line 2: is no JSON object"));
  EXPECT_THAT(error(a + "\n{}"), HasSubstr("line 2: has no file_name"));
  EXPECT_THAT(error(a + "\n" + a), HasSubstr("line 2: names a.jpg once more"));
  EXPECT_THAT(error(R"({"file_name": "c.jpg", "label": [1, 2]})"),
              HasSubstr("line 1: names c.jpg, which is no picture of this folder"));
  EXPECT_THAT(error(R"({"file_name": "a.jpg", "labels": [1, 2]})"), HasSubstr("has no label;"));
  EXPECT_THAT(error(R"({"file_name": "a.jpg", "label": [1]})"),
              HasSubstr("label has a list of 1, not of 2"));
  EXPECT_THAT(error(R"({"file_name": "a.jpg", "label": 1})"), HasSubstr("label is no list of 2"));
  EXPECT_THAT(error(R"({"file_name": "a.jpg", "label": [1, 2.5]})"),
              HasSubstr("label is no whole number of 64 bits"));
  EXPECT_THAT(error(R"({"file_name": "a.jpg", "label": [1, 18446744073709551615]})"),
              HasSubstr("label is no whole number of 64 bits"));
}

TEST_F(LabelTest, SyntheticNumbersAreAFunctionOfTheClass) {
  api::DatasetSource source;
  source.uri = "synthetic://";
  source.samples = 20;
  source.classes = 10;
  source.image = api::ImageShape{2, 2, 1};
  const auto read = [&](const api::Label& label) {
    const auto dataset = OpenDataset(source, job::Split::kTrain, 1, label);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    RawSample sample;
    EXPECT_TRUE((*dataset)->Read(16, &sample).ok());  // of class 6
    return std::pair(sample.fields, (*dataset)->fingerprint());
  };
  const auto [scalar, first] = read({LabelType::kInt64});
  EXPECT_THAT(As<int64_t>(scalar), ElementsAre(6));
  EXPECT_THAT(As<float>(read({LabelType::kFloat32}).first), ElementsAre(0.6f));
  const auto [bits, second] = read({LabelType::kFloat32, {2, 2}});
  EXPECT_THAT(As<float>(bits), ElementsAre(0, 1, 1, 0));
  EXPECT_NE(first, second);
  EXPECT_THAT(read({LabelType::kNone}).first, IsEmpty());
  EXPECT_EQ(read({LabelType::kClass}).second, read({}).second);
  EXPECT_THAT(std::string(OpenDataset(source, job::Split::kTrain, 1, {LabelType::kInt64, {}, "age"})
                              .status()
                              .message()),
              HasSubstr("synthetic data has no fields"));
}

}  // namespace
}  // namespace hetero::source
