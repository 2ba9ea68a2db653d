#include "runtime/source/mds_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/source/little_endian.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::source {
namespace {

const std::string kGolden = testing::SourceDir() + "/tests/golden/datasets/mds/";
constexpr int64_t kMostBytes = 3000;  // as tests/golden/make_datasets.py has it

TEST(MdsWriter, AnIndexIsThatOfMosaicMl) {
  const std::string text = testing::ReadFileOrDie(std::string(kGolden) + "index.json");
  const auto index = ParseMdsIndex("golden", text);
  ASSERT_TRUE(index.ok()) << index.status();
  ASSERT_EQ(index->shards.size(), 3u);
  EXPECT_EQ(MdsIndexText(index->columns, kMostBytes, index->shards), text);
}

TEST(MdsWriter, WhatIsBeforeTheSamplesIsThatOfMosaicMl) {
  const auto index =
      ParseMdsIndex("golden", testing::ReadFileOrDie(std::string(kGolden) + "index.json"));
  ASSERT_TRUE(index.ok()) << index.status();
  const std::string config = MdsConfig(index->columns, kMostBytes);
  for (const MdsShard& shard : index->shards) {
    const std::string file = testing::ReadFileOrDie(kGolden + shard.name);
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(file.data()),
                                         file.size());
    std::vector<uint32_t> lengths;
    for (size_t i = 0; i < static_cast<size_t>(shard.samples); ++i) {
      lengths.push_back(WordAt(bytes, 4 * i + 8) - WordAt(bytes, 4 * i + 4));
    }
    const std::vector<uint8_t> table = MdsTable(lengths, config.size());
    ASSERT_LT(table.size() + config.size(), file.size());
    EXPECT_TRUE(std::equal(table.begin(), table.end(), bytes.begin())) << shard.name;
    EXPECT_EQ(file.substr(table.size(), config.size()), config);
    EXPECT_EQ(static_cast<int64_t>(table.size()), kMdsTable + kMdsTableSample * shard.samples);
  }
}

}  // namespace
}  // namespace hetero::source
