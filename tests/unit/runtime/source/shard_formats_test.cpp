// The same pictures in every format, as the formats' own libraries wrote them
// (tests/golden/make_datasets.py): the same samples in the same order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "api/enums.h"
#include "runtime/source/dataset.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::source {
namespace {

using api::DatasetFormat;

struct Golden {
  DatasetFormat format;
  const char* folder;
  api::SampleFields fields;
};

const Golden kFormatGoldens[] = {
    {DatasetFormat::kWebDataset, "web_dataset", {}},
    {DatasetFormat::kTfRecord, "tf_record", {.label = {.offset = -1}}},
    {DatasetFormat::kMds, "mds", {}},
    {DatasetFormat::kMds, "mds_zstd", {}},
    {DatasetFormat::kRecordIo, "record_io", {}},
    {DatasetFormat::kParquet, "parquet", {}},
    {DatasetFormat::kParquet, "parquet_usual", {}},
    {DatasetFormat::kParquet, "parquet_pages", {}},
    {DatasetFormat::kParquet, "parquet_gzip", {}},
};

api::DatasetSource SourceOf(const char* folder) {
  api::DatasetSource source;
  source.uri = std::string("file://" + testing::SourceDir() + "/tests/golden/datasets/") + folder;
  return source;
}

class ShardFormatsTest : public ::testing::TestWithParam<Golden> {};

TEST_P(ShardFormatsTest, HoldTheSamplesOfTheImageFolder) {
  const auto folder = OpenDataset(SourceOf("image_folder"), job::Split::kTrain, 0);
  ASSERT_TRUE(folder.ok()) << folder.status();
  api::DatasetSource source = SourceOf(GetParam().folder);
  source.fields = GetParam().fields;
  for (const DatasetFormat format : {DatasetFormat::kAuto, GetParam().format}) {
    source.format = format;
    const auto dataset = OpenDataset(source, job::Split::kTrain, 0);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ((*dataset)->classes(), 3);
    ASSERT_EQ((*dataset)->size(), (*folder)->size());
    RawSample wanted;
    RawSample found;
    for (int64_t id = 0; id < (*folder)->size(); ++id) {
      ASSERT_TRUE((*folder)->Read(id, &wanted).ok());
      const absl::Status read = (*dataset)->Read(id, &found);
      ASSERT_TRUE(read.ok()) << read;
      EXPECT_EQ(found.bytes, wanted.bytes) << id;
      EXPECT_EQ(found.encoding, wanted.encoding) << id;
      EXPECT_EQ(found.label, wanted.label) << id;
    }
  }
}

// Whatever the manifest says instead.
TEST(WrongFormatTest, IsToldWithWhatIsThere) {
  constexpr std::pair<const char*, const char*> kThere[] = {{"image_folder", "ImageFolder"},
                                                            {"web_dataset", "WebDataset"},
                                                            {"tf_record", "TFRecord"},
                                                            {"mds", "MDS"},
                                                            {"mds_zstd", "MDS"},
                                                            {"record_io", "RecordIO"},
                                                            {"parquet", "Parquet"},
                                                            {"cifar10", "CIFAR10"}};
  constexpr DatasetFormat kFormats[] = {
      DatasetFormat::kImageFolder, DatasetFormat::kWebDataset, DatasetFormat::kTfRecord,
      DatasetFormat::kMds,         DatasetFormat::kRecordIo,   DatasetFormat::kParquet,
      DatasetFormat::kCifar10,     DatasetFormat::kCifar100,   DatasetFormat::kIdx,
      DatasetFormat::kManifest,    DatasetFormat::kSynthetic};
  for (const auto& [folder, name] : kThere) {
    for (const DatasetFormat wrong : kFormats) {
      if (api::NameOf(wrong) == name) continue;
      api::DatasetSource source = SourceOf(folder);
      source.format = wrong;
      const auto opened = OpenDataset(source, job::Split::kTrain, 0);
      ASSERT_FALSE(opened.ok()) << folder << " as " << api::NameOf(wrong);
      EXPECT_THAT(std::string(opened.status().message()),
                  ::testing::EndsWith(std::string("; what is there looks like ") + name +
                                      ": set dataset.format to " + name + ", or leave it out"))
          << api::NameOf(wrong);
    }
  }
}

// What is wrong is not the format.
TEST(WrongFormatTest, IsNotSaidOfARightOne) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "set/val");
  std::filesystem::copy(SourceOf("web_dataset").uri.substr(7), folder / "set/train",
                        std::filesystem::copy_options::recursive);
  for (const std::string& uri : {SourceOf("web_dataset").uri, "file://" + (folder / "set")}) {
    api::DatasetSource source;
    source.uri = uri;
    source.format = DatasetFormat::kWebDataset;
    source.samples = 13;
    const absl::Status status = OpenDataset(source, job::Split::kTrain, 0).status();
    EXPECT_THAT(std::string(status.message()),
                ::testing::AllOf(::testing::HasSubstr("13"),
                                 ::testing::Not(::testing::HasSubstr("looks like"))))
        << uri;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, ShardFormatsTest, ::testing::ValuesIn(kFormatGoldens),
                         [](const auto& info) { return std::string(info.param.folder); });

}  // namespace
}  // namespace hetero::source
