#include "runtime/source/mds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/unit/runtime/source/dataset_files.h"

namespace hetero::source {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What MosaicML's library wrote (tests/golden/make_datasets.py), to be changed.
class MdsTest : public ::testing::Test {
 protected:
  MdsTest() {
    std::filesystem::copy(testing::SourceDir() + "/tests/golden/datasets/mds", folder_.path(),
                          std::filesystem::copy_options::recursive);
    index_ = nlohmann::json::parse(testing::ReadFileOrDie(folder_ / "index.json"));
  }
  absl::StatusOr<std::unique_ptr<Dataset>> Open(const api::Label& label = {}) {
    api::DatasetSource source = source_;
    source.uri = folder_.Source().uri;
    return OpenDataset(source, job::Split::kTrain, 0, label);
  }
  std::string Error(const api::Label& label = {}) {
    return std::string(Open(label).status().message());
  }
  // The error when this is in the place of every shard's field.
  std::string ErrorWith(const char* field, const nlohmann::json& value) {
    nlohmann::json index = index_;
    for (nlohmann::json& shard : index["shards"]) shard[field] = value;
    folder_.Write("index.json", std::string_view(index.dump()));
    return Error();
  }
  template <typename T>
  std::vector<T> Numbers(const api::Label& label, int64_t id) {
    const auto dataset = Open(label);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    if (!dataset.ok()) return {};
    RawSample sample;
    const absl::Status read = (*dataset)->Read(id, &sample);
    EXPECT_TRUE(read.ok()) << read;
    std::vector<T> numbers(sample.fields.size() / sizeof(T));
    std::memcpy(numbers.data(), sample.fields.data(), sample.fields.size());
    return numbers;
  }
  void ChangeWord(const std::string& file, size_t at, uint32_t word) {
    std::string content = testing::ReadFileOrDie(folder_ / file);
    std::memcpy(content.data() + at, &word, sizeof word);
    folder_.Write(file, std::string_view(content));
  }

  DatasetFolder folder_;
  nlohmann::json index_;
  api::DatasetSource source_;
};

TEST_F(MdsTest, NumbersAreLabels) {
  source_.fields.label.field = "box";
  EXPECT_THAT(Numbers<float>({api::LabelType::kFloat32, {2, 2}}, 4), ElementsAre(1, -1, 0.25, 1e9));
  source_.fields.label.field = "weight";
  EXPECT_THAT(Numbers<float>({api::LabelType::kFloat32}, 11), ElementsAre(0.5));
  EXPECT_THAT(Error({api::LabelType::kInt64}), HasSubstr("whole number"));
  source_.fields.label.field = "class";
  EXPECT_THAT(Numbers<int64_t>({api::LabelType::kInt64}, 11), ElementsAre(2));
  EXPECT_THAT(Numbers<float>({api::LabelType::kFloat32}, 11), ElementsAre(2));
  EXPECT_THAT(Numbers<float>({api::LabelType::kNone}, 0), ElementsAre());
  const auto dataset = Open({api::LabelType::kInt64, {2}});
  ASSERT_TRUE(dataset.ok());
  RawSample sample;
  EXPECT_THAT(std::string((*dataset)->Read(0, &sample).message()),
              AllOf(HasSubstr("shard.00000.mds: byte"), HasSubstr("class has 8 bytes")));
}

TEST_F(MdsTest, ColumnsAreNamed) {
  source_.fields.image = "picture";
  EXPECT_THAT(Error(), AllOf(HasSubstr("index.json"), HasSubstr("no column picture"),
                             HasSubstr("image (bytes)"), HasSubstr("class (int)")));
  source_.fields.image = "class";
  EXPECT_THAT(Error(), HasSubstr("encoding int in the column class"));
  source_.fields = {};
  source_.fields.label.field = "name";
  EXPECT_THAT(Error(), HasSubstr("encoding str in the column name"));
}

TEST_F(MdsTest, WhatIsNotReadIsRefused) {
  EXPECT_THAT(ErrorWith("compression", "br:3"),
              AllOf(HasSubstr("shard 0"), HasSubstr("br:3"), HasSubstr("compression=None")));
  EXPECT_THAT(ErrorWith("compression", "zstd:3"), HasSubstr("shard 0 has no zip_data"));
  EXPECT_THAT(ErrorWith("format", "json"), HasSubstr("the format \"json\""));
  EXPECT_THAT(ErrorWith("version", 1), HasSubstr("version 1"));
  EXPECT_THAT(ErrorWith("column_sizes", {1, 2}), HasSubstr("of one length"));
  EXPECT_THAT(ErrorWith("column_sizes", {-1, 8, nullptr, nullptr, 4}), HasSubstr("column 0"));
  EXPECT_THAT(ErrorWith("raw_data", nullptr), HasSubstr("raw_data"));
  EXPECT_THAT(ErrorWith("raw_data", {{"basename", "../x"}, {"bytes", 1}}), HasSubstr("../x"));
  EXPECT_THAT(
      ErrorWith("column_encodings", {"ndarray:float32:4", "int", "bytes", "pkl", "float32"}),
      HasSubstr("pickled values in the column name"));
  index_["shards"][1]["column_names"][0] = "other";
  folder_.Write("index.json", std::string_view(index_.dump()));
  EXPECT_THAT(Error(), AllOf(HasSubstr("shard 1"), HasSubstr("other columns")));
  source_.format = api::DatasetFormat::kMds;
  const std::string deep(1'000'000, '[');
  const std::string nested = R"({"shards": [{"version": )" + deep + std::string(deep.size(), ']');
  folder_.Write("index.json", std::string_view(nested + "}]}"));
  EXPECT_THAT(Error(), HasSubstr("version array"));
  folder_.Write("index.json", std::string_view("{}"));
  EXPECT_THAT(Error(), HasSubstr("no list of shards"));
}

TEST_F(MdsTest, ShardsAreTheIndexs) {
  index_["shards"][2]["samples"] = 2;
  folder_.Write("index.json", std::string_view(index_.dump()));
  EXPECT_THAT(Error(), AllOf(HasSubstr("shard.00002.mds"), HasSubstr("index.json says 2")));
  index_["shards"][1]["raw_data"]["bytes"] = 5;
  folder_.Write("index.json", std::string_view(index_.dump()));
  EXPECT_THAT(Error(), AllOf(HasSubstr("shard.00001.mds: 2153 bytes"), HasSubstr("says 5")));
  std::filesystem::remove(folder_ / "shard.00001.mds");
  EXPECT_THAT(Error(), HasSubstr("shard.00001.mds"));
}

TEST_F(MdsTest, DamagedTablesAreNamed) {
  ChangeWord("shard.00001.mds", 8, 0x7fffffff);
  EXPECT_THAT(Error(),
              AllOf(HasSubstr("shard.00001.mds: byte 4: sample 0"), HasSubstr("to 2147483647")));
  ChangeWord("shard.00001.mds", 0, 0xffffffff);
  EXPECT_THAT(Error(), AllOf(HasSubstr("shard.00001.mds"), HasSubstr("table of samples")));
}

TEST_F(MdsTest, ADamagedSampleIsABadOne) {
  uint32_t begin = 0;
  std::memcpy(&begin, testing::ReadFileOrDie(folder_ / "shard.00000.mds").data() + 4, 4);
  ChangeWord("shard.00000.mds", begin, 100000);
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  RawSample sample;
  const absl::Status read = (*dataset)->Read(0, &sample);
  EXPECT_TRUE(absl::IsDataLoss(read)) << read;
  EXPECT_THAT(std::string(read.message()), HasSubstr("columns have other sizes"));
  EXPECT_TRUE((*dataset)->Read(1, &sample).ok());
}

}  // namespace
}  // namespace hetero::source
