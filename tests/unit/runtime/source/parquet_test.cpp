#include "runtime/source/parquet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include "tests/support/paths.h"
#include "tests/unit/runtime/source/dataset_files.h"

namespace hetero::source {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kFile[] = "a.parquet";

std::string HuggingFace(const char* name) {
  return testing::ReadFileOrDie(testing::SourceDir() + "/tests/golden/datasets/parquet/" + name);
}

// What pyarrow wrote with one setting or another (tests/golden/make_datasets.py): four small
// pictures, and labels 2, 0, 2, null.
std::string Setting(const std::string& name) {
  return testing::ReadFileOrDie(testing::SourceDir() + "/tests/golden/datasets/parquet_settings/" +
                                name + ".parquet");
}

class ParquetTest : public ::testing::Test {
 protected:
  ParquetTest() { source_.format = api::DatasetFormat::kParquet; }

  absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& content,
                                                const api::Label& label = {}) {
    folder_.Write(kFile, std::string_view(content));
    api::DatasetSource source = source_;
    source.uri = folder_.Source().uri;
    return OpenDataset(source, job::Split::kTrain, 0, label);
  }
  std::string Error(const std::string& content, const api::Label& label = {}) {
    const auto opened = Open(content, label);
    EXPECT_FALSE(opened.ok());
    const std::string message(opened.status().message());
    EXPECT_THAT(message, HasSubstr(folder_.path()));
    return message;
  }
  // Its label, or what is wrong with it.
  std::string LabelOf(const Dataset& dataset, int64_t id) {
    RawSample sample;
    const absl::Status read = dataset.Read(id, &sample);
    if (read.ok()) return std::to_string(sample.label);
    EXPECT_TRUE(absl::IsDataLoss(read)) << read;
    return std::string(read.message());
  }
  std::vector<std::string> LabelsOf(const std::string& setting) {
    const auto dataset = Open(Setting(setting));
    EXPECT_TRUE(dataset.ok()) << setting << ": " << dataset.status();
    std::vector<std::string> labels;
    if (!dataset.ok()) return labels;
    for (int64_t id = 0; id < (*dataset)->size(); ++id) labels.push_back(LabelOf(**dataset, id));
    return labels;
  }
  template <typename T>
  T Number(const Dataset& dataset, int64_t id) {
    RawSample sample;
    const absl::Status read = dataset.Read(id, &sample);
    EXPECT_TRUE(read.ok()) << read;
    T number = 0;
    EXPECT_EQ(sample.fields.size(), sizeof number);
    if (read.ok()) std::memcpy(&number, sample.fields.data(), sizeof number);
    return number;
  }

  DatasetFolder folder_;
  api::DatasetSource source_;
};

TEST_F(ParquetTest, ClassesHaveTheNamesOfAClassLabel) {
  const auto dataset = Open(HuggingFace("train-00000-of-00002.parquet"));
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 7);
  EXPECT_EQ((*dataset)->classes(), 3);  // of which this file has samples of two
  EXPECT_EQ((*dataset)->ClassName(2), "ship");
  EXPECT_EQ((*dataset)->ClassName(3), "3");
  source_.classes = 4;
  EXPECT_THAT(Error(HuggingFace("train-00000-of-00002.parquet")),
              AllOf(HasSubstr("4"), HasSubstr("3")));
}

TEST_F(ParquetTest, ShiftedNumbersHaveNoNames) {
  source_.fields.label.offset = 2;
  const auto dataset = Open(HuggingFace("train-00000-of-00002.parquet"));
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->classes(), 4);
  EXPECT_EQ((*dataset)->ClassName(2), "2");
  EXPECT_EQ(LabelOf(**dataset, 0), "2");
}

TEST_F(ParquetTest, FilesThatNameOtherClassesAreNoDataset) {
  std::string other = HuggingFace("train-00001-of-00002.parquet");
  const size_t name = other.find("\"ship\"");
  ASSERT_NE(name, std::string::npos);
  other.replace(name, 6, "\"boat\"");
  folder_.Write("b.parquet", std::string_view(other));
  EXPECT_THAT(Error(HuggingFace("train-00000-of-00002.parquet")),
              AllOf(HasSubstr("a.parquet and b.parquet"), HasSubstr("different classes")));
}

TEST_F(ParquetTest, LabelsOfEverySettingThatIsRead) {
  for (const char* setting : {"plain", "rewritten", "page_v2", "pages", "label_dictionary",
                              "label_snappy", "label_zstd", "label_gzip", "usual", "dictionary"}) {
    EXPECT_THAT(LabelsOf(setting), ElementsAre("2", "0", "2", HasSubstr("its label is null")))
        << setting;
  }
  EXPECT_THAT(LabelsOf("required"), ElementsAre("2", "0", "2", "1"));
}

TEST_F(ParquetTest, APictureLiesWhereItsFileHasIt) {
  for (const char* setting :
       {"plain", "page_v2", "pages", "label_zstd", "usual", "dictionary", "rewritten"}) {
    const std::string content = Setting(setting);
    const auto dataset = Open(content);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    RawSample sample;
    for (int64_t id = 0; id < 3; ++id) {
      ASSERT_TRUE((*dataset)->Read(id, &sample).ok());
      EXPECT_EQ(sample.bytes.size(), 21);
      EXPECT_EQ(sample.bytes.back(), id);
      EXPECT_EQ(sample.encoding, Encoding::kPng);
    }
  }
}

TEST_F(ParquetTest, ABadSampleIsNamedWithItsRowGroupAndRow) {
  auto dataset = Open(Setting("nested_nulls"));
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(LabelOf(**dataset, 0),
              HasSubstr("a.parquet: row 0 (row group 0): its picture is null"));
  EXPECT_THAT(LabelOf(**dataset, 1), HasSubstr("row 1 (row group 0): its picture is null"));
  EXPECT_EQ(LabelOf(**dataset, 2), "2");
  EXPECT_THAT(LabelOf(**dataset, 3), HasSubstr("its label is null"));
  api::Label none;
  none.type = api::LabelType::kNone;
  EXPECT_THAT(LabelOf(**Open(Setting("nested_nulls"), none), 3),
              HasSubstr("not a JPEG or PNG file"));
  // The second file's rows are counted anew, its second row group has one.
  folder_.Write("b.parquet", std::string_view(Setting("page_v2")));
  dataset = Open(Setting("nested_nulls"));
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ASSERT_EQ((*dataset)->size(), 8);
  EXPECT_THAT((*dataset)->Describe(4), HasSubstr("b.parquet: row 0 (row group 0)"));
  EXPECT_THAT(LabelOf(**dataset, 7),
              HasSubstr("b.parquet: row 3 (row group 1): its label is null"));
  EXPECT_THAT((*dataset)->Describe(8), HasSubstr("sample 8"));
}

TEST_F(ParquetTest, NumbersAreLabels) {
  for (const char* setting : {"plain", "page_v2", "pages", "label_dictionary"}) {
    source_.fields.label.field = "tag";
    auto dataset = Open(Setting(setting), {api::LabelType::kInt64, {}});
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ((*dataset)->classes(), 0);
    EXPECT_EQ(Number<int64_t>(**dataset, 0), 0);
    EXPECT_EQ(Number<int64_t>(**dataset, 1), -(int64_t{1} << 40));
    EXPECT_EQ(Number<int64_t>(**dataset, 2), int64_t{2} << 40);
    dataset = Open(Setting(setting), {api::LabelType::kFloat32, {1}});
    EXPECT_EQ(Number<float>(**dataset, 1), -1099511627776.f);
    source_.fields.label.field = "half";
    dataset = Open(Setting(setting), {api::LabelType::kFloat32, {}});
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ(Number<float>(**dataset, 0), 0.5f);
    EXPECT_THAT(LabelOf(**dataset, 1), HasSubstr("no finite number"));
    EXPECT_EQ(Number<float>(**dataset, 2), -1.5f);
    EXPECT_THAT(LabelOf(**dataset, 3), HasSubstr("label is null"));
    source_.fields.label.field = "count";
    dataset = Open(Setting(setting), {api::LabelType::kInt64, {}});
    EXPECT_EQ(Number<int64_t>(**dataset, 3), int64_t{0xffffffff});
  }
  source_.fields.label.field = "weight";
  const auto dataset =
      Open(HuggingFace("train-00001-of-00002.parquet"), {api::LabelType::kFloat32, {}});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(Number<float>(**dataset, 4), 0.5f);
}

TEST_F(ParquetTest, ANumberThatIsNoClassIsABadSample) {
  source_.fields.label.field = "tag";
  const auto dataset = Open(Setting("plain"));
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->classes(), 1);
  EXPECT_THAT(LabelOf(**dataset, 1), HasSubstr("row 1 (row group 0): its label is no class"));
}

TEST_F(ParquetTest, ColumnsThatHoldNoPicturesAreRefused) {
  EXPECT_THAT(Error(Setting("delta")),
              AllOf(HasSubstr("a.parquet: row group 0: column image is DELTA_LENGTH_BYTE_ARRAY"),
                    HasSubstr("compression=\"none\"")));
  EXPECT_THAT(Error(Setting("list")), HasSubstr("has no column image.bytes, image; has "
                                                "image.list.element (BYTE_ARRAY)"));
  source_.fields.image = "image.list.element";
  EXPECT_THAT(Error(Setting("list")), HasSubstr("holds lists"));
  source_.fields.image = "tag";
  EXPECT_THAT(Error(Setting("plain")), HasSubstr("column tag is INT64, and a picture"));
}

TEST_F(ParquetTest, LabelsThatAreNoNumbersAreRefused) {
  EXPECT_THAT(Error(Setting("label_delta")), HasSubstr("column label is DELTA_BINARY_PACKED"));
  EXPECT_THAT(Error(Setting("label_text")), AllOf(HasSubstr("column label is BYTE_ARRAY: text"),
                                                  HasSubstr("class_encode_column()")));
  EXPECT_THAT(Error(Setting("label_decimal")), HasSubstr("of a DECIMAL, which is not read"));
  EXPECT_THAT(Error(Setting("plain"), {api::LabelType::kFloat32, {2}}),
              HasSubstr("wants 2 numbers"));
  source_.fields.label.field = "half";
  EXPECT_THAT(Error(Setting("plain")), HasSubstr("column half is DOUBLE, and a whole number"));
  source_.fields.label.field = "age";
  EXPECT_THAT(Error(Setting("plain")),
              AllOf(HasSubstr("has no column age; has image (BYTE_ARRAY), label (INT64)"),
                    HasSubstr("dataset.fields.label.field")));
}

TEST_F(ParquetTest, AColumnOfAnotherNameMayBeAStruct) {
  source_.fields.image = "image";
  EXPECT_TRUE(Open(HuggingFace("train-00000-of-00002.parquet")).ok());
  source_.fields.image = "image.path";
  const auto dataset = Open(HuggingFace("train-00000-of-00002.parquet"));
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(LabelOf(**dataset, 0), HasSubstr("not a JPEG or PNG file"));
}

// A message whose bytes are no UTF-8 reaches nobody.
TEST_F(ParquetTest, NamesOfColumnsAreShownAsUtf8) {
  std::string content = Setting("plain");
  for (size_t at = 0; (at = content.find("half", at)) != std::string::npos; ++at) {
    content[at + 1] = static_cast<char>(0xff);
  }
  source_.fields.label.field = "age";
  EXPECT_THAT(Error(content), HasSubstr("h\uFFFDlf (DOUBLE)"));
}

TEST_F(ParquetTest, AFileThatIsCutShortOrNone) {
  const std::string content = Setting("plain");
  EXPECT_THAT(Error(content.substr(0, content.size() - 1)), HasSubstr("does not end as a Parquet"));
  EXPECT_THAT(Error("PAR1"), HasSubstr("4 bytes"));
  std::string damaged = content;
  damaged.replace(damaged.size() - 4, 4, "PARE");
  EXPECT_THAT(Error(damaged), HasSubstr("encrypted"));
  damaged = content;
  damaged[damaged.size() - 6] = 1;  // a footer of 64 KiB more than there is
  EXPECT_THAT(Error(damaged), HasSubstr("larger than the file"));
  damaged = content;
  damaged[damaged.size() - 5] = 127;
  EXPECT_THAT(Error(damaged), HasSubstr("67108864 at most"));
  source_.format = api::DatasetFormat::kAuto;
  EXPECT_THAT(Error(std::string(100, 'x')), HasSubstr("*.parquet (Parquet)"));
}

// Whatever byte is another one: an answer, and never a crash.
TEST_F(ParquetTest, EveryByteMayBeDamaged) {
  for (const char* setting : {"nested_nulls", "label_dictionary", "label_snappy", "label_zstd",
                              "usual", "dictionary", "label_gzip"}) {
    const std::string content = Setting(setting);
    for (size_t i = 0; i < content.size(); ++i) {
      std::string damaged = content;
      damaged[i] = static_cast<char>(damaged[i] ^ (i % 2 == 0 ? 0x7f : 0x11));
      const auto dataset = Open(damaged);
      if (!dataset.ok()) {
        EXPECT_TRUE(absl::IsDataLoss(dataset.status()) || absl::IsInvalidArgument(dataset.status()))
            << setting << ", byte " << i << ": " << dataset.status();
        continue;
      }
      for (int64_t id = 0; id < (*dataset)->size(); ++id) LabelOf(**dataset, id);
    }
  }
}

TEST_F(ParquetTest, FilesAreFoundByTheirNames) {
  folder_.Write("b/c.parquet", std::string_view(Setting("required")));
  folder_.Write("b/_metadata.parquet", std::string_view("none"));
  folder_.Write("README.md", std::string_view("none"));
  auto dataset = Open(Setting("plain"));
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->shards(), 2);
  EXPECT_EQ((*dataset)->size(), 8);
  const std::string first = (*dataset)->fingerprint();
  folder_.Write("b/c.parquet", std::string_view(Setting("page_v2")));
  dataset = Open(Setting("plain"));
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_NE((*dataset)->fingerprint(), first);
  source_.uri = "file://" + testing::SourceDir() +
                "/tests/golden/datasets/parquet/train-{00000..00001}-of-00002.parquet";
  dataset = OpenDataset(source_, job::Split::kTrain, 0);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 12);
}

}  // namespace
}  // namespace hetero::source
