// hetero-runtime pack: the shards are read by tar, and give the job's own stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
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
using testing::ProgramResult;
using testing::ProgramRun;
using testing::ReadFileOrDie;
using testing::RunProgram;
using testing::TemporaryFolder;
using testing::WriteFile;

namespace fs = std::filesystem;

constexpr std::chrono::seconds kDeadline(60);

std::map<std::string, std::string> Unpacked(const std::string& folder) {
  TemporaryFolder out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".tar") continue;
    const std::string command = "tar -x -C '" + out.path() + "' -f '" + entry.path().string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  return FilesOf(out.path());
}

TEST(Pack, ShardsHoldWhatTheFilesHeldAndGiveTheSameStream) {
  TemporaryFolder folder;
  const ProgramResult result = RunProgram("hetero-runtime", {"pack", kPictures, folder / "set"});
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("uri: file://" + (folder / "set")), HasSubstr("format: WebDataset"),
                    HasSubstr("samples: 12"), HasSubstr("classes: 3"), HasSubstr(": 0 ")));
  // In the order of an ImageFolder: classes by name, then files by name.
  std::map<std::string, std::string> expected;
  std::string last;
  int id = 0, label = -1;
  for (const auto& [path, bytes] : FilesOf(kPictures)) {
    const std::string of = path.substr(0, path.find('/'));
    if (of != last) ++label;
    last = of;
    char key[16];
    std::snprintf(key, sizeof key, "%09d.", id++);
    expected[key + (fs::path(path).extension() == ".png" ? std::string("png") : "jpg")] = bytes;
    expected[std::string(key) + "cls"] = std::to_string(label);
  }
  ASSERT_EQ(expected.size(), 24u);
  EXPECT_EQ(Unpacked(folder / "set"), expected);
  const std::string digest = InputDigest(std::string("{uri: \"file://") + kPictures + "\"}");
  EXPECT_EQ(digest.size(), 32u);
  EXPECT_EQ(InputDigest("{uri: \"file://" + (folder / "set") + "\"}"), digest);
}

// From pages and dictionaries, as pyarrow writes them unless told otherwise.
TEST(Pack, PicturesOfParquetBecomeTheSameShards) {
  TemporaryFolder folder;
  ASSERT_EQ(RunProgram("hetero-runtime", {"pack", kPictures, folder / "set"}).exit_code, 0);
  for (const char* name : {"parquet", "parquet_usual", "parquet_pages", "parquet_gzip"}) {
    const std::string from = testing::SourceDir() + "/tests/golden/datasets/" + name;
    const std::string to = folder / (std::string("of_") + name);
    const ProgramResult result = RunProgram("hetero-runtime", {"pack", from, to});
    ASSERT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(Unpacked(to), Unpacked(folder / "set")) << name;
  }
}

TEST(Pack, LabelsThatAreNoClassesStayNumbers) {
  TemporaryFolder folder;
  fs::copy(std::string(kPictures) + "/cat", folder / "data");
  std::string lines;
  for (const auto& [name, bytes] : FilesOf(folder / "data")) {
    lines += R"({"file_name": ")" + name +
             R"(", "label": [[0.1, -2], [3e-7, 4]]})"
             "\n";
  }
  WriteFile(folder / "data/metadata.jsonl", lines);
  const ProgramResult result = RunProgram(
      "hetero-runtime",
      {"pack", folder / "data", folder / "set", "--label-type", "Float32", "--label-shape", "2,2"});
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("type: Float32"), HasSubstr("shape: [2, 2]"),
                                   HasSubstr("field: json")));
  const nlohmann::json label = nlohmann::json::parse(Unpacked(folder / "set")["000000001.json"]);
  const nlohmann::json given = {{0.1, -2}, {3e-7, 4}};
  for (size_t row = 0; row < 2; ++row) {
    for (size_t column = 0; column < 2; ++column) {
      EXPECT_EQ(label[row][column].get<float>(), given[row][column].get<float>());
    }
  }
  const ProgramResult read =
      RunProgram("hetero-runtime", {"inspect", folder / "set", "--label-type", "Float32",
                                    "--label-shape", "2,2", "--label", "json", "--json"});
  EXPECT_EQ(read.exit_code, 0) << read.output;
}

struct Shards {
  std::string format, size, second, fourth, index;
};

class PackStopped : public ::testing::TestWithParam<Shards> {};

TEST_P(PackStopped, GoesOnWithTheSameBytes) {
  const Shards& shards = GetParam();
  TemporaryFolder folder;
  const ProgramResult drawn =
      RunProgram("hetero-runtime", {"make-dataset", folder / "data", "--samples", "4000",
                                    "--validation-samples", "0", "--size", "48"});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.output;
  const std::string data = folder / "data/train";
  const auto arguments = [&](const std::string& destination) {
    return std::vector<std::string>{"pack",        data,           destination, "--format",
                                    shards.format, "--shard-size", shards.size};
  };
  ASSERT_EQ(RunProgram("hetero-runtime", arguments(folder / "whole")).exit_code, 0);
  const auto whole = FilesOf(folder / "whole");
  ASSERT_TRUE(whole.contains(shards.fourth)) << whole.size();
  EXPECT_EQ(whole.contains("index.json"), !shards.index.empty());

  const std::string destination = folder / "stopped";
  std::string kept;
  for (const int signal : {SIGINT, SIGKILL}) {
    ProgramRun run("hetero-runtime", arguments(destination));
    const std::string awaited =
        destination + "/" + (signal == SIGINT ? shards.second : shards.fourth);
    const auto begin = std::chrono::steady_clock::now();
    while (!fs::exists(awaited) && run.running() &&
           std::chrono::steady_clock::now() - begin < kDeadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    run.Signal(signal);
    const ProgramResult stopped = run.Wait(kDeadline);
    if (signal == SIGKILL || stopped.exit_code == 0) continue;
    EXPECT_EQ(stopped.exit_code, 130);
    EXPECT_THAT(stopped.output, HasSubstr("the same command goes on"));
    EXPECT_FALSE(fs::exists(destination + "/index.json")) << "it is no dataset yet";
    kept = stopped.output;
  }
  EXPECT_NE(kept, "") << "it was done before it was stopped";
  const ProgramResult last = RunProgram("hetero-runtime", arguments(destination));
  EXPECT_EQ(last.exit_code, 0) << last.output;
  EXPECT_THAT(last.output, HasSubstr("samples were packed already"));
  auto stopped = FilesOf(destination);
  EXPECT_EQ(stopped.size(), whole.size());
  for (const auto& [name, bytes] : whole) {
    if (name == "_pack.json") continue;
    EXPECT_TRUE(stopped[name] == bytes) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PackStopped,
    ::testing::Values(Shards{"WebDataset", "1MiB", "shard-000001.tar", "shard-000003.tar", ""},
                      Shards{"MDS", "512KiB", "shard.00001.mds", "shard.00003.mds", "index.json"}),
    [](const auto& shards) { return shards.param.format; });

TEST(Pack, ADestinationThatHoldsSomethingElseIsRefused) {
  TemporaryFolder folder;
  WriteFile(folder / "notes.txt", "mine");
  const ProgramResult other = RunProgram("hetero-runtime", {"pack", kPictures, folder.path()});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.output, AllOf(HasSubstr(folder.path()), HasSubstr("notes.txt"),
                                  HasSubstr("another destination")));
  ASSERT_EQ(RunProgram("hetero-runtime", {"pack", kPictures, folder / "set"}).exit_code, 0);
  const ProgramResult resized =
      RunProgram("hetero-runtime", {"pack", kPictures, folder / "set", "--shard-size", "2MB"});
  EXPECT_EQ(resized.exit_code, 1);
  EXPECT_THAT(resized.output, HasSubstr("another --shard-size"));
  WriteFile(folder / "set/_pack.json", "{");
  const ProgramResult broken = RunProgram("hetero-runtime", {"pack", kPictures, folder / "set"});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.output, HasSubstr("no record of a packing"));
  const ProgramResult tiny =
      RunProgram("hetero-runtime", {"pack", kPictures, folder / "tiny", "--shard-size", "1KB"});
  EXPECT_EQ(tiny.exit_code, 2) << tiny.output;
}

TEST(Pack, BarePixelsBecomePicturesWithTheSamePixels) {
  TemporaryFolder folder;
  const std::string cifar = testing::SourceDir() + "/tests/golden/datasets/cifar10";
  const ProgramResult result = RunProgram("hetero-runtime", {"pack", cifar, folder / "set"});
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("image: {height: 32, width: 32, channels: 3}"));
  EXPECT_EQ(InputDigest("{uri: \"file://" + (folder / "set") + "\"}"),
            InputDigest("{uri: \"file://" + cifar + "\"}"));
}

TEST(Pack, ADestinationInTheDatasetIsRefused) {
  TemporaryFolder folder;
  fs::copy(kPictures, folder / "data", fs::copy_options::recursive);
  for (const std::string& destination :
       {folder / "data", folder / "data/", folder / "data/packed", folder / "set/../data/cat"}) {
    const ProgramResult result =
        RunProgram("hetero-runtime", {"pack", folder / "data", destination});
    EXPECT_EQ(result.exit_code, 1) << destination;
    EXPECT_THAT(result.output, HasSubstr("choose another destination")) << destination;
  }
  EXPECT_EQ(FilesOf(folder / "data"), FilesOf(kPictures));
  EXPECT_EQ(RunProgram("hetero-runtime", {"pack", folder / "data", folder / "data-2"}).exit_code,
            0);
}

TEST(Pack, WhatSomebodyElsePutThereIsFound) {
  TemporaryFolder folder;
  const std::vector<std::string> arguments = {"pack", kPictures, folder / "set"};
  ASSERT_EQ(RunProgram("hetero-runtime", arguments).exit_code, 0);
  WriteFile(folder / "set/shard-000009.tar", "more");
  const ProgramResult more = RunProgram("hetero-runtime", arguments);
  EXPECT_EQ(more.exit_code, 1);
  EXPECT_THAT(more.output, HasSubstr("shard-000009.tar"));
  fs::remove(folder / "set/shard-000009.tar");
  std::string record = ReadFileOrDie(folder / "set/_pack.json");
  const size_t at = record.find("\"samples\": 12");
  ASSERT_NE(at, std::string::npos) << record;
  WriteFile(folder / "set/_pack.json", record.replace(at, 13, "\"samples\": 13"));
  const ProgramResult wrong = RunProgram("hetero-runtime", arguments);
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.output, HasSubstr("wrong about shard-000000.tar"));
}

TEST(Pack, ABadSampleIsNamed) {
  TemporaryFolder folder;
  fs::copy(kPictures, folder / "data", fs::copy_options::recursive);
  WriteFile(folder / "data/cat/bad.jpg", "no picture");
  const ProgramResult result =
      RunProgram("hetero-runtime", {"pack", folder / "data", folder / "set"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("data/cat/bad.jpg"));
}

TEST(Pack, AFormatThatIsNoneIsToldTheOnesThatAre) {
  const ProgramResult result =
      RunProgram("hetero-runtime", {"pack", kPictures, "somewhere", "--format", "TFRecord"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("--format: \"TFRecord\" is none of MDS, WebDataset"));
}

}  // namespace
}  // namespace hetero
