// What members of a job compare of the objects that they found.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "runtime/source/image_folder.h"
#include "runtime/source/mds.h"
#include "runtime/source/web_dataset.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::source {
namespace {

const std::string kGoldens = testing::SourceDir() + "/tests/golden/datasets/";

// A bucket that holds a folder, each object with version "1".
class Bucket : public storage::Store {
 public:
  explicit Bucket(const std::string& folder, std::string uri = "s3://bucket")
      : uri_(std::move(uri)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kGoldens + folder)) {
      if (!entry.is_regular_file()) continue;
      const std::string name = entry.path().lexically_relative(kGoldens + folder);
      bytes_[name] = testing::ReadFileOrDie(entry.path());
      objects_[name] = {name, static_cast<int64_t>(bytes_[name].size()), "\"1\""};
    }
  }
  void SetVersion(const std::string& version) { objects_.rbegin()->second.version = version; }

  const std::string& uri() const override { return uri_; }
  bool is_remote() const override { return true; }
  absl::StatusOr<std::vector<storage::Object>> List(std::string_view) const override {
    std::vector<storage::Object> all;
    for (const auto& [name, object] : objects_) all.push_back(object);
    return all;
  }
  absl::StatusOr<storage::Object> Head(std::string_view name) const override {
    const auto found = objects_.find(name);
    if (found == objects_.end()) return absl::NotFoundError("not there");
    return found->second;
  }
  absl::Status Read(const storage::Object& object, int64_t offset,
                    absl::Span<uint8_t> out) const override {
    std::memcpy(out.data(), bytes_.at(object.name).data() + offset, out.size());
    return absl::OkStatus();
  }

 private:
  const std::string uri_;
  std::map<std::string, std::string> bytes_;
  std::map<std::string, storage::Object, std::less<>> objects_;
};

std::unique_ptr<Dataset> OpenIn(const std::string& folder, std::shared_ptr<Bucket> bucket) {
  const ShardSource shards{.store = bucket};
  absl::StatusOr<std::unique_ptr<Dataset>> dataset = absl::NotFoundError(folder);
  if (folder == "image_folder") dataset = OpenImageFolder(bucket->uri(), shards, {}, {});
  if (folder == "web_dataset") dataset = OpenWebDataset(shards, {}, job::Split::kTrain, {});
  if (folder == "mds_zstd") dataset = OpenMds(shards, {}, job::Split::kTrain, {});
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  return dataset.ok() ? *std::move(dataset) : nullptr;
}

class VersionsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(VersionsTest, AreOfTheObjectsThatWereFound) {
  const auto bucket = std::make_shared<Bucket>(GetParam());
  const auto first = OpenIn(GetParam(), bucket);
  const auto copy = OpenIn(GetParam(), std::make_shared<Bucket>(GetParam(), "s3://other/copy"));
  EXPECT_EQ(first->versions().size(), 16);
  EXPECT_EQ(copy->versions(), first->versions());
  bucket->SetVersion("\"2\"");
  const auto later = OpenIn(GetParam(), bucket);
  EXPECT_NE(later->versions(), first->versions());
  EXPECT_EQ(later->fingerprint(), first->fingerprint());
  EXPECT_EQ(later->places(), first->places());
}

TEST_P(VersionsTest, WeakOnesSayNothing) {
  const auto bucket = std::make_shared<Bucket>(GetParam());
  bucket->SetVersion("W/\"1\"");
  const auto first = OpenIn(GetParam(), bucket);
  bucket->SetVersion("W/\"2\"");
  EXPECT_EQ(OpenIn(GetParam(), bucket)->versions(), first->versions());
}

TEST_P(VersionsTest, OfAFolderAreNotCompared) {
  const auto folder = std::make_shared<Bucket>(GetParam(), "file:///data");
  if (GetParam() == "image_folder") return;  // which is read without a store
  EXPECT_EQ(OpenIn(GetParam(), folder)->versions(), "");
}

INSTANTIATE_TEST_SUITE_P(Formats, VersionsTest,
                         ::testing::Values("image_folder", "web_dataset", "mds_zstd"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hetero::source
