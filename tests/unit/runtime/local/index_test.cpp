#include "runtime/local/index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <stop_token>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::local {
namespace {

using ::testing::StartsWith;

class IndexDatasetTest : public ::testing::Test {
 protected:
  IndexDatasetTest() {
    options_.source.uri = "file://" + testing::SourceDir() + "/tests/golden/datasets/web_dataset";
    options_.destination = "file://" + (folder_ / "index");
    options_.on_progress = [this](const IndexProgress& progress) {
      told_.push_back(progress);
      if (stop_when_told_) stop_.request_stop();
    };
    options_.stop = stop_.get_token();
  }

  testing::TemporaryFolder folder_;
  IndexOptions options_;
  std::stop_source stop_;
  bool stop_when_told_ = false;
  std::vector<IndexProgress> told_;
};

TEST_F(IndexDatasetTest, TellsHowFarItIs) {
  const auto indexed = IndexDataset(options_);
  ASSERT_TRUE(indexed.ok()) << indexed.status();
  EXPECT_EQ(indexed->shards, 3);
  EXPECT_EQ(indexed->source.samples, 12);
  ASSERT_FALSE(told_.empty());
  EXPECT_GT(told_.front().bytes, 0);
  EXPECT_EQ(told_.back().bytes, told_.back().all_bytes);
}

TEST_F(IndexDatasetTest, ThatIsStoppedLeavesNone) {
  stop_when_told_ = true;
  const auto indexed = IndexDataset(options_);
  EXPECT_TRUE(absl::IsCancelled(indexed.status())) << indexed.status();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST(IndexProgressTest, IsALineForAPerson) {
  EXPECT_EQ(ProgressText({0, 4'000'000'000}, 3), "indexed 0 B of 4.00 GB");
  EXPECT_EQ(ProgressText({1'000'000'000, 4'000'000'000}, 10),
            "indexed 1.00 GB of 4.00 GB, 100 MB/s, 30.0 s left");
  EXPECT_THAT(ProgressText({4'000'000'000, 4'000'000'000}, 10),
              StartsWith("indexed 4.00 GB of 4.00 GB, 400 MB/s"));
}

}  // namespace
}  // namespace hetero::local
