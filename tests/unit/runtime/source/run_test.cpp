// Samples that one request reads, because they lie beside each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "runtime/source/mds.h"
#include "runtime/source/parquet.h"
#include "runtime/source/record_io.h"
#include "runtime/source/tf_record.h"
#include "runtime/source/web_dataset.h"
#include "runtime/storage/file_store.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/source/dataset_files.h"
#include "tests/unit/runtime/source/tar_files.h"

namespace hetero::source {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Lt;
using ::testing::SizeIs;
using Lists = std::vector<std::vector<int64_t>>;

Lists RunsOf(const Dataset& dataset, const std::vector<int64_t>& ids) {
  Lists lists;
  for (const Dataset::Run& run : dataset.RunsOf(ids)) lists.push_back(run.ids);
  return lists;
}

// A folder that counts its reads as if they went through a network.
class FarStore : public storage::Store {
 public:
  explicit FarStore(const std::string& folder) : store_(*storage::OpenFileStore(folder)) {}
  const std::string& uri() const override { return store_->uri(); }
  bool is_remote() const override { return true; }
  absl::StatusOr<std::vector<storage::Object>> List(std::string_view prefix) const override {
    return store_->List(prefix);
  }
  absl::StatusOr<storage::Object> Head(std::string_view name) const override {
    return store_->Head(name);
  }
  absl::Status Read(const storage::Object& object, int64_t offset,
                    absl::Span<uint8_t> out) const override {
    ++reads;
    bytes += static_cast<int64_t>(out.size());
    if (broken) return absl::UnavailableError("503");
    return store_->Read(object, offset, out);
  }

  mutable int64_t reads = 0;
  mutable int64_t bytes = 0;
  bool broken = false;

 private:
  const std::unique_ptr<storage::WritableStore> store_;
};

std::vector<int64_t> IdsOf(const Dataset& dataset) {
  std::vector<int64_t> ids(static_cast<size_t>(dataset.size()));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// Two shards of 100 pictures of 20,000 bytes, each with a class.
class RunTest : public ::testing::Test {
 protected:
  static constexpr int64_t kPicture = 20'000;
  RunTest() {
    for (const char* shard : {"a.tar", "b.tar"}) {
      std::vector<std::pair<std::string, std::string>> members;
      for (int i = 0; i < 100; ++i) {
        std::string picture = absl::StrCat("\xff\xd8\xff\xe0 ", shard, " ", i, " ");
        picture.resize(kPicture, static_cast<char>('a' + i % 26));
        members.emplace_back(absl::StrCat(i, ".jpg"), picture);
        members.emplace_back(absl::StrCat(i, ".cls"), absl::StrCat(i % 7));
      }
      folder_.Write(shard, std::string_view(TarOf(members)));
    }
    store_ = std::make_shared<FarStore>(folder_.path());
    dataset_ = *OpenWebDataset({.store = store_}, api::DatasetSource(), job::Split::kTrain, {});
    store_->reads = 0;
    store_->bytes = 0;
  }

  DatasetFolder folder_;
  std::shared_ptr<FarStore> store_;
  std::unique_ptr<Dataset> dataset_;
};

TEST_F(RunTest, NeighboursAreReadTogetherAndAreWhatTheyAre) {
  std::vector<int64_t> ids = {150, 30, 31, 29, 151, 90};
  const Lists runs = RunsOf(*dataset_, ids);
  EXPECT_THAT(runs, ElementsAre(ElementsAre(150, 151), ElementsAre(29, 30, 31), ElementsAre(90)));
  std::vector<RawSample> samples(3);
  for (const absl::Status& status : dataset_->ReadRun(runs[1], absl::MakeSpan(samples))) {
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(store_->reads, 1);
  RawSample alone;
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(dataset_->Read(runs[1][i], &alone).ok());
    EXPECT_EQ(samples[i].bytes, alone.bytes);
    EXPECT_EQ(samples[i].label, alone.label);
    EXPECT_EQ(samples[i].encoding, alone.encoding);
  }
}

TEST_F(RunTest, OfAllIsAboutTheSizeOfTheDatasetInFewRequests) {
  const Lists runs = RunsOf(*dataset_, IdsOf(*dataset_));
  EXPECT_THAT(runs, SizeIs(2));
  for (const auto& ids : runs) {
    std::vector<RawSample> samples(ids.size());
    dataset_->ReadRun(ids, absl::MakeSpan(samples));
  }
  EXPECT_EQ(store_->reads, 2);
  EXPECT_THAT(store_->bytes, AllOf(Ge(200 * kPicture), Lt(200 * (kPicture + 2048))));
}

// One is left out of four: more than a sixteenth would be read for nothing.
TEST_F(RunTest, DoesNotReadWhatNobodyWants) {
  EXPECT_THAT(RunsOf(*dataset_, {0, 1, 3, 4}), ElementsAre(ElementsAre(0, 1), ElementsAre(3, 4)));
  std::vector<int64_t> ids = IdsOf(*dataset_);
  ids.resize(100);
  ids.erase(ids.begin() + 50);  // and one of many
  EXPECT_THAT(RunsOf(*dataset_, ids), ElementsAre(SizeIs(99)));
  const Lists every_third = RunsOf(*dataset_, {0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33});
  EXPECT_THAT(every_third, AllOf(SizeIs(12), Each(SizeIs(1))));
}

TEST_F(RunTest, ThatCannotBeReadIsAnErrorOfEachSample) {
  store_->broken = true;
  std::vector<RawSample> samples(3);
  const std::vector<int64_t> ids = {3, 4, 5};
  const std::vector<absl::Status> statuses = dataset_->ReadRun(ids, absl::MakeSpan(samples));
  ASSERT_EQ(statuses.size(), 3U);
  for (const absl::Status& status : statuses) EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

// Ids that are none are left to Read(), which names them.
TEST_F(RunTest, HasNoSamplesThatAreNone) {
  const Lists runs = RunsOf(*dataset_, {1'000, 5, -1, 6});
  EXPECT_THAT(runs, ElementsAre(ElementsAre(1'000), ElementsAre(5, 6), ElementsAre(-1)));
}

TEST_F(RunTest, SayHowManyBytesTheyRead) {
  for (const Dataset::Run& run : dataset_->RunsOf({3, 4, 5, 70})) {
    store_->bytes = 0;
    std::vector<RawSample> samples(run.ids.size());
    dataset_->ReadRun(run.ids, absl::MakeSpan(samples));
    EXPECT_EQ(store_->bytes, run.bytes);
  }
}

// Small samples, of which every other one is wanted: a request for all would read twice as much.
TEST(RunsOfSmallSamplesTest, AreThoseOfNeighbours) {
  const DatasetFolder folder;
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 40; ++i) {
    members.emplace_back(absl::StrCat(i, ".png"), "\x89PNG\r\n\x1a\n" + std::string(300, 'x'));
    members.emplace_back(absl::StrCat(i, ".cls"), "1");
  }
  folder.Write("a.tar", std::string_view(TarOf(members)));
  auto store = std::make_shared<FarStore>(folder.path());
  const auto dataset = *OpenWebDataset({.store = store}, {}, job::Split::kTrain, {});
  EXPECT_THAT(RunsOf(*dataset, IdsOf(*dataset)), SizeIs(1));
  EXPECT_THAT(RunsOf(*dataset, {0, 2, 4, 6}), SizeIs(4));
}

// They take a request each, one behind the other: together they would come late.
TEST(RunsOfLabelsThatLieApartTest, AreOneSample) {
  auto store =
      std::make_shared<FarStore>(testing::SourceDir() + "/tests/golden/datasets/web_dataset");
  const api::Label label{.type = api::LabelType::kFloat32, .shape = {}, .field = "cls"};
  const auto dataset = OpenWebDataset({.store = store}, {}, job::Split::kTrain, label);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(RunsOf(**dataset, IdsOf(**dataset)), AllOf(SizeIs(12), Each(SizeIs(1))));
}

struct GoldenFormat {
  const char* folder;
  absl::StatusOr<std::unique_ptr<Dataset>> (*open)(const ShardSource&, const api::DatasetSource&,
                                                   job::Split, const api::Label&);
};

TEST(RunsOfGoldenTest, HaveTheSamplesOfTheFormatsOwnLibraries) {
  const GoldenFormat kFormats[] = {{"web_dataset", OpenWebDataset},
                                   {"tf_record", OpenTfRecord},
                                   {"record_io", OpenRecordIo},
                                   {"mds", OpenMds},
                                   {"parquet", OpenParquet}};
  for (const auto& [folder, open] : kFormats) {
    auto store = std::make_shared<FarStore>(
        absl::StrCat(testing::SourceDir() + "/tests/golden/datasets/", folder));
    const auto opened = open({.store = store}, {}, job::Split::kTrain, {});
    ASSERT_TRUE(opened.ok()) << opened.status();
    const Dataset& dataset = **opened;
    const Lists runs = RunsOf(dataset, IdsOf(dataset));
    EXPECT_EQ(static_cast<int64_t>(runs.size()), dataset.shards()) << folder;
    for (const auto& ids : runs) {
      std::vector<RawSample> samples(ids.size());
      store->reads = 0;
      const auto statuses = dataset.ReadRun(ids, absl::MakeSpan(samples));
      EXPECT_EQ(store->reads, 1) << folder;
      for (size_t i = 0; i < ids.size(); ++i) {
        RawSample alone;
        EXPECT_EQ(dataset.Read(ids[i], &alone), statuses[i]);
        EXPECT_EQ(alone.bytes, samples[i].bytes);
        EXPECT_EQ(alone.label, samples[i].label);
      }
    }
  }
}

}  // namespace
}  // namespace hetero::source
