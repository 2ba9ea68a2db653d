// Datasets whose samples are found by an index: the same ones, or a named error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/source/dataset.h"
#include "runtime/source/index_place.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/source/dataset_files.h"

namespace hetero::source {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

struct IndexedFormat {
  const char* folder;  // of tests/golden/datasets
  const char* shard;   // one of its shards
  api::SampleFields fields;
};

const IndexedFormat kIndexedFormats[] = {
    {"web_dataset", "pictures-000001.tar", {}},
    {"tf_record", "pictures-00001-of-00002", {.label = {.offset = -1}}},
    {"record_io", "pictures.rec", {}},
};

// A copy of a dataset that was written by its format's own library, to be changed.
class IndexedDataset {
 public:
  explicit IndexedDataset(const IndexedFormat& format) : format_(format) {
    fs::copy(absl::StrCat(testing::SourceDir() + "/tests/golden/datasets/", format.folder),
             path("data"), fs::copy_options::recursive);
  }

  std::string path(const std::string& name) const { return folder_ / name; }
  std::string index() const { return path("data/_index.hetero"); }
  std::string shard() const { return absl::StrCat(path("data/"), format_.shard); }

  api::DatasetSource Source(std::optional<api::IndexBuild> build = {}) const {
    api::DatasetSource source = folder_.Source("data");
    source.fields = format_.fields;
    if (build) source.index = api::DatasetIndex{.uri = "file://" + index(), .build = *build};
    return source;
  }
  std::unique_ptr<Dataset> Open(std::optional<api::IndexBuild> build = {}) const {
    auto dataset = OpenDataset(Source(build), job::Split::kTrain, 0);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    return dataset.ok() ? *std::move(dataset) : nullptr;
  }
  std::string Error(const api::DatasetSource& source) const {
    return std::string(OpenDataset(source, job::Split::kTrain, 0).status().message());
  }
  std::string Error() const { return Error(Source(api::IndexBuild::kNever)); }

 private:
  const IndexedFormat format_;
  DatasetFolder folder_;
};

void ExpectSameSamples(const Dataset& found, const Dataset& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  EXPECT_EQ(found.classes(), wanted.classes());
  EXPECT_EQ(found.fingerprint(), wanted.fingerprint());
  RawSample sample;
  RawSample other;
  for (int64_t id = 0; id < wanted.size(); ++id) {
    ASSERT_TRUE(wanted.Read(id, &other).ok());
    const absl::Status read = found.Read(id, &sample);
    ASSERT_TRUE(read.ok()) << read;
    EXPECT_EQ(sample.bytes, other.bytes) << id;
    EXPECT_EQ(sample.label, other.label) << id;
    EXPECT_EQ(found.Describe(id), wanted.Describe(id));
  }
}

class DatasetIndexTest : public ::testing::TestWithParam<IndexedFormat> {};

TEST_P(DatasetIndexTest, FindsTheSamplesThatTheShardsHold) {
  const IndexedDataset data(GetParam());
  const auto scanned = data.Open();
  ASSERT_NE(scanned, nullptr);
  const auto first = data.Open(api::IndexBuild::kAuto);
  ASSERT_NE(first, nullptr);
  ASSERT_TRUE(fs::exists(data.index()));
  const auto second = data.Open(api::IndexBuild::kNever);
  ASSERT_NE(second, nullptr);
  ExpectSameSamples(*first, *scanned);
  ExpectSameSamples(*second, *scanned);
  EXPECT_EQ(second->places(), first->places());
  EXPECT_EQ(first->places().size(), 8);
}

TEST_P(DatasetIndexTest, IsRefusedWhenAShardIsAnotherOne) {
  const IndexedDataset data(GetParam());
  ASSERT_NE(data.Open(api::IndexBuild::kAuto), nullptr);
  const std::string command =
      absl::StrCat("make it again: hetero-runtime index file://", data.path("data"), " file://",
                   data.index(), GetParam().fields.label.offset ? " --label-offset -1" : "");
  fs::last_write_time(data.shard(), fs::last_write_time(data.shard()) - std::chrono::hours(1));
  EXPECT_THAT(data.Error(), AllOf(HasSubstr("file://" + data.index()), HasSubstr(GetParam().shard),
                                  HasSubstr("was changed or copied"), HasSubstr(command)));
  // As for whoever may make one: nobody's file is written over without being asked.
  EXPECT_THAT(data.Error(data.Source(api::IndexBuild::kAlways)), HasSubstr("was changed"));
  const std::string ending = fs::path(data.shard()).extension().string();
  fs::copy(data.shard(), data.path("data/zz-00000-of-00001" + ending));
  fs::last_write_time(data.shard(), fs::last_write_time(data.shard()) + std::chrono::hours(1));
  EXPECT_THAT(data.Error(), AnyOf(HasSubstr("has the shard"), HasSubstr("shards, and it has")));
}

INSTANTIATE_TEST_SUITE_P(Every, DatasetIndexTest, ::testing::ValuesIn(kIndexedFormats),
                         [](const auto& info) { return std::string(info.param.folder); });

TEST(IndexFileTest, EveryByteThatIsNotAsItWasWrittenIsTold) {
  const IndexedDataset data(kIndexedFormats[0]);
  ASSERT_NE(data.Open(api::IndexBuild::kAuto), nullptr);
  const std::string good = testing::ReadFileOrDie(data.index());
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    testing::WriteFile(data.index(), bad);
    EXPECT_THAT(data.Error(), AllOf(HasSubstr("file://" + data.index()),
                                    AnyOf(HasSubstr("is damaged"), HasSubstr("is no index"),
                                          HasSubstr("an index of version"))))
        << "byte " << at;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    testing::WriteFile(data.index(), good.substr(0, size));
    EXPECT_THAT(data.Error(), HasSubstr(size < 32 ? "is no index" : "is damaged")) << size;
  }
  testing::WriteFile(data.index(), good + '\0');
  EXPECT_THAT(data.Error(), HasSubstr("is damaged"));
  testing::WriteFile(data.index(), good);
  EXPECT_EQ(data.Error(), "");
}

TEST(IndexFileTest, OfOtherFieldsIsRefused) {
  const IndexedDataset data(kIndexedFormats[0]);
  ASSERT_NE(data.Open(api::IndexBuild::kAuto), nullptr);
  api::DatasetSource source = data.Source(api::IndexBuild::kNever);
  source.fields.label.offset = 1;
  EXPECT_THAT(data.Error(source), AllOf(HasSubstr("rule"), HasSubstr("cls + 1")));
}

TEST(IndexFileTest, IsReadOnceAndMayGoThen) {
  const IndexedDataset data(kIndexedFormats[0]);
  ASSERT_NE(data.Open(api::IndexBuild::kAuto), nullptr);
  const auto dataset = data.Open(api::IndexBuild::kNever);
  ASSERT_NE(dataset, nullptr);
  fs::remove(data.index());
  RawSample sample;
  EXPECT_TRUE(dataset->Read(3, &sample).ok());
}

// It is written under another name and renamed, but not by everybody.
TEST(IndexFileTest, ThatIsWrittenOverWhileItIsUsedEndsTheReadAndIsNoBadSample) {
  const IndexedDataset data(kIndexedFormats[0]);
  ASSERT_NE(data.Open(api::IndexBuild::kAuto), nullptr);
  const auto dataset = data.Open(api::IndexBuild::kNever);
  ASSERT_NE(dataset, nullptr);
  // Of the same size, in place.
  std::string content = testing::ReadFileOrDie(data.index());
  std::fill(content.end() - 200, content.end(), '\x7f');
  testing::WriteFile(data.index(), content);
  RawSample sample;
  const absl::Status read = dataset->Read(11, &sample);
  EXPECT_TRUE(absl::IsFailedPrecondition(read)) << read;
  EXPECT_THAT(std::string(read.message()), HasSubstr("was written over"));
  EXPECT_THAT(dataset->Describe(11), HasSubstr("sample 11"));
}

TEST(IndexFileTest, ThatIsCutShortWhileItIsUsedEndsTheReadAndIsNoBadSample) {
  const IndexedDataset data(kIndexedFormats[0]);
  ASSERT_NE(data.Open(api::IndexBuild::kAuto), nullptr);
  const auto dataset = data.Open(api::IndexBuild::kNever);
  ASSERT_NE(dataset, nullptr);
  fs::resize_file(data.index(), 100);
  RawSample sample;
  const absl::Status read = dataset->Read(3, &sample);
  EXPECT_TRUE(absl::IsFailedPrecondition(read)) << read;
  EXPECT_THAT(std::string(read.message()), HasSubstr("_index.hetero"));
}

TEST(IndexFileTest, ThatIsMissingIsAnErrorWithTheCommandThatMakesIt) {
  const IndexedDataset data(kIndexedFormats[1]);
  EXPECT_THAT(data.Error(),
              AllOf(HasSubstr("has no index"), HasSubstr("build is Never"),
                    HasSubstr(absl::StrCat("`hetero-runtime index file://", data.path("data"),
                                           " file://", data.index(), " --label-offset -1`"))));
  // Nobody goes through so many bytes unasked. The file takes no room on the disk.
  const std::string large = data.path("data/zz-00000-of-00001");
  testing::WriteFile(large, "");
  fs::resize_file(large, 11'000'000'000);
  for (const bool named : {false, true}) {
    api::DatasetSource source = data.Source();
    if (named) source = data.Source(api::IndexBuild::kAuto);
    EXPECT_THAT(data.Error(source), AllOf(HasSubstr("has no index"), HasSubstr("110000"),
                                          HasSubstr("hetero-runtime index file://")));
  }
  EXPECT_THAT(data.Error(data.Source(api::IndexBuild::kAlways)), HasSubstr("begins no record"));
}

TEST(IndexFileTest, ThatIsAPipeIsNotWaitedFor) {
  const IndexedDataset data(kIndexedFormats[0]);
  ASSERT_EQ(mkfifo(data.index().c_str(), 0600), 0);
  EXPECT_THAT(data.Error(), HasSubstr("is no index"));
}

TEST(IndexFileTest, ThatListsFarMoreShardsIsNotParsed) {
  const IndexedDataset data(kIndexedFormats[0]);
  ASSERT_NE(data.Open(api::IndexBuild::kAuto), nullptr);
  std::string content = testing::ReadFileOrDie(data.index()).substr(0, 32);
  const uint32_t description = 8 << 20;
  const uint64_t samples = 0;
  std::memcpy(content.data() + 12, &description, sizeof description);
  std::memcpy(content.data() + 16, &samples, sizeof samples);
  testing::WriteFile(data.index(), content + std::string(description, '['));
  EXPECT_THAT(data.Error(), HasSubstr("lists far more shards"));
}

TEST(IndexFileTest, AmongTheShardsIsRefusedBeforeItIsWritten) {
  const IndexedDataset data(kIndexedFormats[1]);
  api::DatasetSource source = data.Source();
  source.index = api::DatasetIndex{.uri = "file://" + data.path("data/index")};
  EXPECT_THAT(data.Error(source), AllOf(HasSubstr("taken for one of the files"),
                                        HasSubstr(data.path("data/_index.hetero"))));
  EXPECT_FALSE(fs::exists(data.path("data/index")));
  // Named files have no neighbours.
  source.uri += "/pictures-0000{0..1}-of-00002";
  EXPECT_EQ(data.Error(source), "");
}

// As a shell takes it.
TEST(IndexFileTest, TheCommandThatMakesItIsToBePasted) {
  api::DatasetSource source;
  source.uri = "s3://bucket/it's {0..1}.tar";
  source.format = api::DatasetFormat::kWebDataset;
  source.fields.image = "jpg;png";
  EXPECT_EQ(IndexCommand(source, {api::LabelType::kFloat32, {2, 3}, "json/box"}, "", true),
            "hetero-runtime index 's3://bucket/it'\\''s {0..1}.tar' s3://bucket/_index.hetero "
            "--format WebDataset --image 'jpg;png' --label-type Float32 --label-field json/box "
            "--label-shape 2,3 --storage JOB.yaml");
  // Files beside each other have indexes of their own.
  for (const auto& [data, index] :
       {std::pair("s3://bucket/a.tar", "s3://bucket/_a.tar.hetero"),
        std::pair("file:///a.tar", "file:///_a.tar.hetero"),
        std::pair("s3://bucket.tar", "s3://bucket.tar/_index.hetero")}) {
    EXPECT_EQ(IndexCommand({.uri = data}, {}, "", false),
              absl::StrCat("hetero-runtime index ", data, " ", index));
  }
}

TEST(IndexFileTest, IsNotTakenByFormatsThatHaveTheirOwn) {
  for (const char* format : {"mds", "parquet", "image_folder", "cifar10"}) {
    api::DatasetSource source;
    source.uri = absl::StrCat("file://" + testing::SourceDir() + "/tests/golden/datasets/", format);
    source.index = api::DatasetIndex{.uri = "file:///x"};
    EXPECT_THAT(std::string(OpenDataset(source, job::Split::kTrain, 0).status().message()),
                HasSubstr("needs no index"))
        << format;
  }
}

TEST(IndexFileTest, ThatCannotBeWrittenKeepsNobodyFromTheData) {
  const IndexedDataset data(kIndexedFormats[0]);
  api::DatasetSource source = data.Source();
  source.index = api::DatasetIndex{.uri = "file:///proc/self/index.hetero"};
  EXPECT_EQ(data.Error(source), "");
}

}  // namespace
}  // namespace hetero::source
