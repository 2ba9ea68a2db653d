#include "runtime/source/unpacked_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/source/dataset.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/source/dataset_files.h"

namespace hetero::source {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What MosaicML's library compressed (tests/golden/make_datasets.py).
const std::string kPacked = testing::SourceDir() + "/tests/golden/datasets/mds_zstd/";
// Raw sizes of the shards, as index.json has them.
std::vector<int64_t> RawSizes() {
  std::vector<int64_t> sizes;
  const auto index =
      nlohmann::json::parse(testing::ReadFileOrDie(std::string(kPacked) + "index.json"));
  for (const auto& shard : index["shards"]) sizes.push_back(shard["raw_data"]["bytes"]);
  return sizes;
}

std::string ShardName(size_t number) { return "shard.0000" + std::to_string(number) + ".mds.zstd"; }

// Holds the shards and counts how often one is read.
class CountedStore : public storage::Store {
 public:
  CountedStore() {
    for (size_t i = 0; i < 3; ++i)
      content_.push_back(testing::ReadFileOrDie(kPacked + ShardName(i)));
  }
  const std::string& uri() const override { return uri_; }
  absl::StatusOr<std::vector<storage::Object>> List(std::string_view) const override {
    return absl::UnimplementedError("List");
  }
  absl::StatusOr<storage::Object> Head(std::string_view) const override {
    return absl::UnimplementedError("Head");
  }
  absl::Status Read(const storage::Object& object, int64_t offset,
                    absl::Span<uint8_t> out) const override {
    ++reads;
    const std::string& bytes = content_[static_cast<size_t>(object.name[10] - '0')];
    std::memcpy(out.data(), bytes.data() + offset, out.size());
    return absl::OkStatus();
  }
  std::vector<UnpackedShards::Shard> Shards() const {
    std::vector<UnpackedShards::Shard> shards;
    const std::vector<int64_t> sizes = RawSizes();
    for (size_t i = 0; i < content_.size(); ++i) {
      shards.push_back({{ShardName(i), static_cast<int64_t>(content_[i].size()), "v"}, sizes[i]});
    }
    return shards;
  }

  mutable std::atomic<int> reads = 0;

 private:
  const std::string uri_ = "memory://packed";
  std::vector<std::string> content_;
};

class UnpackedShardsTest : public ::testing::Test {
 protected:
  // As MosaicML's library writes the same samples without compression; the headers differ.
  static std::vector<std::string> PlainShards() {
    std::vector<std::string> plain;
    for (const char* name : {"shard.00000.mds", "shard.00001.mds", "shard.00002.mds"}) {
      plain.push_back(
          testing::ReadFileOrDie(testing::SourceDir() + "/tests/golden/datasets/mds/" + name));
    }
    return plain;
  }
  // kInternal: other bytes than the shard has.
  absl::Status ReadAllOf(const UnpackedShards& store, size_t shard) {
    const auto object = store.Head(ShardName(shard));
    if (!object.ok()) return object.status();
    std::vector<uint8_t> bytes(static_cast<size_t>(object->size));
    const absl::Status read = store.Read(*object, 0, absl::MakeSpan(bytes));
    if (!read.ok()) return read;
    constexpr size_t kSamples = 600;  // bytes at the end, less than any shard's samples have
    const std::string& plain = plain_[shard];
    const bool same = std::equal(bytes.end() - kSamples, bytes.end(), plain.end() - kSamples,
                                 [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); });
    return same ? absl::OkStatus() : absl::InternalError("other bytes");
  }

  const std::shared_ptr<CountedStore> packed_ = std::make_shared<CountedStore>();
  const std::vector<int64_t> sizes_ = RawSizes();
  const std::vector<std::string> plain_ = PlainShards();
};

TEST_F(UnpackedShardsTest, TheShardsThatWereUsedLastAreKept) {
  const UnpackedShards store(packed_, packed_->Shards(), sizes_[0] + sizes_[1]);
  const auto reads_after = [&](size_t shard) {
    EXPECT_TRUE(ReadAllOf(store, shard).ok());
    return packed_->reads.load();
  };
  EXPECT_EQ(reads_after(0), 1);
  EXPECT_EQ(reads_after(1), 2);
  EXPECT_EQ(reads_after(0), 2);
  EXPECT_EQ(reads_after(2), 3);  // in the place of 1, which was used before 0
  EXPECT_EQ(reads_after(0), 3);
  EXPECT_EQ(reads_after(1), 4);
}

TEST_F(UnpackedShardsTest, AShardLargerThanWhatIsKeptIsReadEachTime) {
  const UnpackedShards store(packed_, packed_->Shards(), sizes_[0] - 1);
  EXPECT_TRUE(ReadAllOf(store, 0).ok());
  EXPECT_TRUE(ReadAllOf(store, 0).ok());
  EXPECT_EQ(packed_->reads, 2);
}

TEST_F(UnpackedShardsTest, HasTheShardsAndNoOthers) {
  const UnpackedShards store(packed_, packed_->Shards());
  const auto all = store.List("");
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 3);
  EXPECT_EQ((*all)[1], (storage::Object{ShardName(1), sizes_[1], "v"}));
  EXPECT_TRUE(absl::IsNotFound(store.Head("index.json").status()));
  uint8_t byte = 0;
  EXPECT_TRUE(absl::IsOutOfRange(store.Read((*all)[1], sizes_[1], absl::MakeSpan(&byte, 1))));
  EXPECT_TRUE(store.Read((*all)[1], sizes_[1], {}).ok());
  EXPECT_EQ(packed_->reads, 0);
}

TEST_F(UnpackedShardsTest, AnotherSizeThanTheIndexSaysIsDamage) {
  for (const int64_t wrong : {-1, 1}) {
    std::vector<UnpackedShards::Shard> shards = packed_->Shards();
    shards[1].bytes += wrong;
    const UnpackedShards store(packed_, shards);
    const absl::Status read = ReadAllOf(store, 1);
    EXPECT_TRUE(absl::IsDataLoss(read)) << read;
    EXPECT_THAT(read.message(), AllOf(HasSubstr("memory://packed/shard.00001.mds.zstd"),
                                      HasSubstr("is no Zstandard of")));
  }
}

TEST_F(UnpackedShardsTest, ManyThreadsReadTheSame) {
  const UnpackedShards store(packed_, packed_->Shards(), sizes_[0] + sizes_[1]);
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (size_t j = 0; j < 100; ++j) failed += !ReadAllOf(store, (i + j) % 3).ok();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
}

// As a sample that ends processes is read (runtime/feed/guarded_samples): whatever other threads of
// the parent held.
TEST_F(UnpackedShardsTest, AChildOfForkReadsWithoutWhatItsParentKeeps) {
  const UnpackedShards store(packed_, packed_->Shards());
  EXPECT_TRUE(ReadAllOf(store, 0).ok());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(ReadAllOf(store, 0).ok() && packed_->reads == 2 ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

class PackedMdsTest : public ::testing::Test {
 protected:
  PackedMdsTest() {
    std::filesystem::copy(kPacked, folder_.path(), std::filesystem::copy_options::recursive);
    index_ = nlohmann::json::parse(testing::ReadFileOrDie(folder_ / "index.json"));
  }
  std::string Error() {
    folder_.Write("index.json", std::string_view(index_.dump()));
    return std::string(OpenDataset(folder_.Source(), job::Split::kTrain, 0).status().message());
  }
  DatasetFolder folder_;
  nlohmann::json index_;
};

TEST_F(PackedMdsTest, AShardThatCannotBeHeldIsRefused) {
  index_["shards"][1]["raw_data"]["bytes"] = (int64_t{256} << 20) + 1;
  EXPECT_THAT(Error(), AllOf(HasSubstr("shard.00001.mds.zstd: a compressed shard of 268435457"),
                             HasSubstr("compression=None")));
}

TEST_F(PackedMdsTest, EitherAllShardsAreCompressedOrNone) {
  index_["shards"][1]["compression"] = nullptr;
  EXPECT_THAT(Error(), HasSubstr("shard 1 has another compression than the first one"));
}

TEST_F(PackedMdsTest, ADamagedShardEndsTheOpening) {
  index_["shards"][1]["raw_data"]["bytes"] = 7;
  EXPECT_THAT(Error(), HasSubstr("shard.00001.mds.zstd: is no Zstandard of 7 bytes"));
  index_["shards"][1]["zip_data"]["bytes"] = 7;
  EXPECT_THAT(Error(), HasSubstr("but index.json says 7"));
}

}  // namespace
}  // namespace hetero::source
