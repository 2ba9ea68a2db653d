// hetero-runtime pack --format MDS: the bytes that MosaicML's own library writes
// (tests/golden/make_datasets.py), and the job's own stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/integration/local/datasets.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/paths.h"

namespace hetero {
namespace {

using ::testing::AllOf;
using testing::FilesOf;
using ::testing::HasSubstr;
using testing::InputDigest;
using testing::kPictures;
using ::testing::Not;
using testing::ProgramResult;
using testing::ReadFileOrDie;
using testing::RunProgram;
using testing::TemporaryFolder;
using testing::WriteFile;

namespace fs = std::filesystem;

const std::string kDatasets = testing::SourceDir() + "/tests/golden/datasets/";

ProgramResult PackMds(const std::string& source, const std::string& destination,
                      std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"pack", source, destination, "--format", "MDS"});
  return RunProgram("hetero-runtime", options);
}

// What is packed into a folder, without the record.
std::map<std::string, std::string> DatasetIn(const std::string& folder) {
  std::map<std::string, std::string> files = FilesOf(folder);
  EXPECT_EQ(files.erase("_pack.json"), 1u);
  return files;
}

void ExpectGolden(const std::string& folder, const std::string& golden) {
  const auto expected = FilesOf(kDatasets + ("mds_packed/" + golden));
  EXPECT_EQ(expected.size(), 2u);
  EXPECT_TRUE(DatasetIn(folder) == expected) << golden;
}

TEST(PackMds, GivesTheStreamOfTheSource) {
  TemporaryFolder folder;
  const ProgramResult result = PackMds(kPictures, folder / "mds");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("uri: file://" + (folder / "mds")), HasSubstr("format: MDS"),
                    HasSubstr("samples: 12"), HasSubstr("classes: 3"), HasSubstr("0 bird, 1 cat")));
  ExpectGolden(folder / "mds", "classes");
  ASSERT_EQ(RunProgram("hetero-runtime", {"pack", kPictures, folder / "tar"}).exit_code, 0);
  const std::string digest = InputDigest(std::string("{uri: \"file://") + kPictures + "\"}");
  EXPECT_EQ(digest.size(), 32u);
  EXPECT_EQ(InputDigest("{uri: \"file://" + (folder / "mds") + "\"}"), digest);
  EXPECT_EQ(InputDigest("{uri: \"file://" + (folder / "tar") + "\"}"), digest);
}

TEST(PackMds, ManyShardsAndBarePixelsGiveTheStreamOfTheSource) {
  TemporaryFolder folder;
  const ProgramResult drawn =
      RunProgram("hetero-runtime", {"make-dataset", folder / "data", "--samples", "400",
                                    "--validation-samples", "0", "--size", "32"});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.output;
  const ProgramResult result =
      PackMds(folder / "data/train", folder / "many", {"--shard-size", "64KiB", "--no-verify"});
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const nlohmann::json index = nlohmann::json::parse(ReadFileOrDie(folder / "many/index.json"));
  const auto& shards = index.at("shards");
  ASSERT_GE(shards.size(), 3u);
  EXPECT_EQ(DatasetIn(folder / "many").size(), shards.size() + 1);
  for (const nlohmann::json& shard : shards) {
    EXPECT_LE(shard.at("raw_data").at("bytes"), 64 << 10);
    if (shard == shards.back()) continue;
    EXPECT_GE(shard.at("raw_data").at("bytes"), 56 << 10);
  }
  EXPECT_EQ(InputDigest("{uri: \"file://" + (folder / "many") + "\"}"),
            InputDigest("{uri: \"file://" + (folder / "data/train") + "\"}"));

  const std::string cifar = std::string(kDatasets) + "cifar10";
  const ProgramResult pixels = PackMds(cifar, folder / "pixels");
  ASSERT_EQ(pixels.exit_code, 0) << pixels.output;
  EXPECT_THAT(pixels.output, HasSubstr("image: {height: 32, width: 32, channels: 3}"));
  EXPECT_EQ(InputDigest("{uri: \"file://" + (folder / "pixels") + "\"}"),
            InputDigest("{uri: \"file://" + cifar + "\"}"));
}

TEST(PackMds, LabelsHaveTheEncodingOfTheirType) {
  const struct {
    const char* golden;
    std::vector<std::string> packed, read;
  } kCases[] = {
      {"boxes",
       {"--label", "box", "--label-type", "Float32", "--label-shape", "2,2"},
       {"--label-type", "Float32", "--label-shape", "2,2"}},
      {"numbers", {"--label", "class", "--label-type", "Int64"}, {"--label-type", "Int64"}},
      {"pictures", {"--label-type", "None"}, {"--label-type", "None"}},
  };
  for (const auto& label : kCases) {
    TemporaryFolder folder;
    const ProgramResult result =
        PackMds(std::string(kDatasets) + "mds", folder / "set", label.packed);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    EXPECT_THAT(result.output, AllOf(HasSubstr("type: " + label.read[1]), Not(HasSubstr("field"))));
    ExpectGolden(folder / "set", label.golden);
    std::vector<std::string> inspect = {"inspect", folder / "set", "--json"};
    inspect.insert(inspect.end(), label.read.begin(), label.read.end());
    const ProgramResult read = RunProgram("hetero-runtime", inspect);
    EXPECT_EQ(read.exit_code, 0) << read.output;
  }
}

TEST(PackMds, WithoutAllShardsThereIsNoIndex) {
  TemporaryFolder folder;
  fs::copy(kPictures, folder / "data", fs::copy_options::recursive);
  ASSERT_EQ(PackMds(folder / "data", folder / "set").exit_code, 0);
  const std::string picture = ReadFileOrDie(folder / "data/cat/3.jpg");
  WriteFile(folder / "data/cat/3.jpg", std::string(picture.size(), '?'));
  const ProgramResult whole = PackMds(folder / "data", folder / "set");
  EXPECT_EQ(whole.exit_code, 0) << "all is packed: " << whole.output;
  ExpectGolden(folder / "set", "classes");

  fs::remove(folder / "set/shard.00000.mds");
  const ProgramResult bad = PackMds(folder / "data", folder / "set");
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_THAT(bad.output, HasSubstr("data/cat/3.jpg"));
  EXPECT_TRUE(DatasetIn(folder / "set").empty());

  WriteFile(folder / "data/cat/3.jpg", picture);
  const ProgramResult again = PackMds(folder / "data", folder / "set");
  EXPECT_EQ(again.exit_code, 0) << again.output;
  ExpectGolden(folder / "set", "classes");

  fs::remove(folder / "set/index.json");
  const ProgramResult last = PackMds(folder / "data", folder / "set");
  EXPECT_EQ(last.exit_code, 0) << last.output;
  EXPECT_THAT(last.output, HasSubstr("12 samples were packed already"));
  ExpectGolden(folder / "set", "classes");
}

TEST(PackMds, WhatIsNotItsOwnIsRefused) {
  TemporaryFolder folder;
  ASSERT_EQ(RunProgram("hetero-runtime", {"pack", kPictures, folder / "tar"}).exit_code, 0);
  const ProgramResult tar = PackMds(kPictures, folder / "tar");
  EXPECT_EQ(tar.exit_code, 1);
  EXPECT_THAT(tar.output, AllOf(HasSubstr(folder / "tar"), HasSubstr("another --format"),
                                HasSubstr("choose another destination")));
  ASSERT_EQ(PackMds(kPictures, folder / "set").exit_code, 0);
  const std::string index = ReadFileOrDie(folder / "set/index.json");
  std::string longer = index;
  WriteFile(folder / "set/index.json",
            longer.replace(index.find("samples\": 12"), 13, "samples\": 13"));
  const ProgramResult other = PackMds(kPictures, folder / "set");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.output, HasSubstr("its index.json is not that of its shards"));
  EXPECT_EQ(ReadFileOrDie(folder / "set/index.json"), longer) << "it is not this program's";
  WriteFile(folder / "set/index.json", index);
  WriteFile(folder / "set/shard.00009.mds", "more");
  const ProgramResult more = PackMds(kPictures, folder / "set");
  EXPECT_EQ(more.exit_code, 1);
  EXPECT_THAT(more.output, HasSubstr("shard.00009.mds"));
}

TEST(PackMds, AShardHasLessThan4GiB) {
  TemporaryFolder folder;
  const ProgramResult large = PackMds(kPictures, folder / "set", {"--shard-size", "4GiB"});
  EXPECT_EQ(large.exit_code, 2) << large.output;
  EXPECT_THAT(large.output, AllOf(HasSubstr("--shard-size"), HasSubstr("4294967296"),
                                  HasSubstr("4294967295 at most")));
  EXPECT_FALSE(fs::exists(folder / "set"));
  EXPECT_EQ(PackMds(kPictures, folder / "set", {"--shard-size", "4294967295"}).exit_code, 0);
  const ProgramResult unknown =
      RunProgram("hetero-runtime", {"pack", kPictures, folder / "idx", "--format", "IDX"});
  EXPECT_EQ(unknown.exit_code, 2) << unknown.output;
}

}  // namespace
}  // namespace hetero
