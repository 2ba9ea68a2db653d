#include "runtime/train/checkpoint/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "api/manifest.h"
#include "base/atomic_file.h"
#include "base/crc32c.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/train/file_size_limit.h"

namespace hetero::train {
namespace {

namespace fs = std::filesystem;
using hetero::testing::ReadFileOrDie;
using hetero::testing::TemporaryFolder;
using hetero::testing::WriteFile;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

CheckpointManifest MakeManifest(int64_t step) {
  CheckpointManifest manifest;
  manifest.job = "small";
  manifest.run = "run-1";
  manifest.created_unix_ns = 1000 + step;
  manifest.model = "mlp";
  manifest.classes = 10;
  manifest.input = {8, 8, 3};
  manifest.optimizer = "SGD";
  manifest.samples = 200;
  manifest.dataset_fingerprint = "0123456789abcdef";
  manifest.seed = 11;
  manifest.global_batch = 16;
  manifest.step = step;
  manifest.digest = job::StreamDigest(0x123456789abcdef0u, static_cast<uint64_t>(step));
  return manifest;
}

constexpr char kOrderManifest[] = R"(
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: order}
spec:
  dataset: {uri: "synthetic://", samples: 64, classes: 4, image: {height: 8, width: 8, channels: 3}}
  pipeline: [{op: HorizontalFlip}, {op: Normalize}]
  training: {model: {name: mlp}, epochs: 2, batchSizePerWorker: 8}
  roles:
  - {name: head, type: Head}
  - {name: cpu, type: CPUWorker}
  - {name: gpu, type: GPUWorker}
)";

// Bytes that differ everywhere, so that no cut or flip can go unnoticed by luck.
std::string Noise(size_t size, uint64_t seed) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(seed >> 56);
  }
  return bytes;
}

CheckpointFiles MakeFiles(int64_t step) {
  return {{"model.safetensors", Noise(30'000, static_cast<uint64_t>(step))},
          {"optimizer.safetensors", Noise(17'001, static_cast<uint64_t>(step) + 1)}};
}

// Two checkpoints, of steps 10 and 20.
class CheckpointFolderTest : public ::testing::Test {
 protected:
  CheckpointFolderTest() {
    EXPECT_TRUE(folder_.Create().ok());
    for (const int64_t step : {10, 20})
      newest_ = *folder_.Write(MakeManifest(step), MakeFiles(step));
  }
  // Step of what is loaded; -1 when nothing is.
  int64_t LoadedStep() const {
    const auto loaded = folder_.LoadNewest(MakeManifest(0), "");
    return loaded.ok() ? loaded->manifest.step : -1;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  TemporaryFolder temporary_;
  CheckpointFolder folder_{temporary_ / "checkpoints"};
  std::string newest_;
};

TEST_F(CheckpointFolderTest, LoadsTheNewestWithItsFiles) {
  const auto loaded = folder_.LoadNewest(MakeManifest(0), "");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->manifest.step, 20);
  EXPECT_EQ(loaded->manifest.digest, MakeManifest(20).digest);
  EXPECT_THAT(loaded->damaged, IsEmpty());
  for (const auto& [name, bytes] : MakeFiles(20)) EXPECT_EQ(loaded->files.at(name), bytes);
}

TEST_F(CheckpointFolderTest, AnEmptyFolderHasNone) {
  const CheckpointFolder empty(temporary_ / "empty");
  EXPECT_TRUE(absl::IsNotFound(empty.LoadNewest(MakeManifest(0), "").status()));
}

TEST_F(CheckpointFolderTest, TornAtEveryPageTheOneBeforeIsLoaded) {
  constexpr uintmax_t kPage = 4096;
  for (const auto& entry : fs::directory_iterator(newest_)) {
    const std::string path = entry.path();
    const std::string whole = ReadFileOrDie(path);
    for (uintmax_t size = 0; size < whole.size(); size += kPage) {
      fs::resize_file(path, size);
      EXPECT_EQ(LoadedStep(), 10) << path << " cut to " << size;
    }
    fs::resize_file(path, whole.size() - 1);
    EXPECT_EQ(LoadedStep(), 10) << path;
    WriteFile(path, whole);
    EXPECT_EQ(LoadedStep(), 20) << path;
  }
}

TEST_F(CheckpointFolderTest, ATensorFileMade300GigabytesLongIsDamagedAndTakesNoMemory) {
  fs::resize_file(newest_ + "/optimizer.safetensors", uintmax_t{300} << 30);
  const auto loaded = folder_.LoadNewest(MakeManifest(0), "");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->manifest.step, 10);
  ASSERT_THAT(loaded->damaged, SizeIs(1));
  EXPECT_THAT(loaded->damaged[0], HasSubstr("optimizer.safetensors has 322122547200 bytes"));
}

TEST_F(CheckpointFolderTest, AFlippedBitIsSeenAnywhere) {
  for (const auto& entry : fs::directory_iterator(newest_)) {
    const std::string path = entry.path();
    const std::string whole = ReadFileOrDie(path);
    const size_t stride = std::max<size_t>(1, whole.size() / 40);
    for (size_t at = 0; at < whole.size(); at += stride) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
      WriteFile(path, flipped);
      EXPECT_EQ(LoadedStep(), 10) << path << " at " << at;
    }
    WriteFile(path, whole);
  }
}

TEST_F(CheckpointFolderTest, AMissingFileOfTheNewestIsNamedAndPassedOver) {
  fs::remove(newest_ + "/optimizer.safetensors");
  const auto loaded = folder_.LoadNewest(MakeManifest(0), "");
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->manifest.step, 10);
  ASSERT_THAT(loaded->damaged, SizeIs(1));
  EXPECT_THAT(loaded->damaged[0], HasSubstr("optimizer.safetensors is missing"));
}

TEST_F(CheckpointFolderTest, AllDamagedIsAnErrorAndNoFreshStart) {
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    fs::remove(entry.path() / "DONE");
  }
  const absl::Status status = folder_.LoadNewest(MakeManifest(0), "").status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("step-000000000010: it was not written to its end"));
  EXPECT_THAT(status.message(), HasSubstr("resume: Never"));
}

TEST_F(CheckpointFolderTest, AnotherJobsCheckpointIsRefusedWithWhatDiffers) {
  CheckpointManifest job = MakeManifest(0);
  job.model = "resnet18";
  job.samples = 300;
  job.dataset_fingerprint = "fedcba9876543210";
  const absl::Status status = folder_.LoadNewest(job, "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  for (const char* difference :
       {"model mlp (this job: resnet18)", "samples of the dataset 200 (this job: 300)",
        "fingerprint of the dataset 0123456789abcdef (this job: fedcba9876543210)"}) {
    EXPECT_THAT(status.message(), HasSubstr(difference));
  }
}

TEST_F(CheckpointFolderTest, ANewerFormatIsRefused) {
  CheckpointManifest manifest = MakeManifest(30);
  manifest.format_version = CheckpointManifest::kFormatVersion + 1;
  ASSERT_TRUE(folder_.Write(manifest, MakeFiles(30)).ok());
  const absl::Status status = folder_.LoadNewest(MakeManifest(0), "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("it has format 2, and this version reads up to 1"));
}

TEST_F(CheckpointFolderTest, PruningKeepsTheNewestAndClearsWhatWasInterrupted) {
  ASSERT_TRUE(folder_.Write(MakeManifest(30), MakeFiles(30)).ok());
  fs::create_directory(folder_.path() + "/.writing-step-000000000040");
  WriteFile(folder_.path() + "/notes.txt", "mine");
  ASSERT_TRUE(folder_.Prune(2, "").ok());
  EXPECT_THAT(Names(), ::testing::UnorderedElementsAre("step-000000000020", "step-000000000030",
                                                       "notes.txt"));
}

TEST_F(CheckpointFolderTest, WithARunOnlyItsCheckpointsCountAndGo) {
  EXPECT_TRUE(absl::IsNotFound(folder_.LoadNewest(MakeManifest(0), "run-2").status()));
  for (const int64_t step : {2, 4, 6}) {
    CheckpointManifest manifest = MakeManifest(step);
    manifest.run = "run-2";
    manifest.created_unix_ns = 2000 + step;
    ASSERT_TRUE(folder_.Write(manifest, MakeFiles(step)).ok());
  }
  EXPECT_EQ(folder_.LoadNewest(MakeManifest(0), "run-2")->manifest.step, 6);
  ASSERT_TRUE(folder_.Prune(1, "run-2").ok());
  EXPECT_THAT(Names(), ::testing::UnorderedElementsAre("step-000000000006", "step-000000000010",
                                                       "step-000000000020"));
  // Written last, though of fewer steps.
  EXPECT_EQ(LoadedStep(), 6);
}

// resume: Never promises to leave them alone.
TEST_F(CheckpointFolderTest, AnotherRunsCheckpointOfTheSameStepWasReplaced) {
  CheckpointManifest manifest = MakeManifest(20);
  manifest.run = "run-2";
  const auto written = folder_.Write(manifest, MakeFiles(21), /*beside_others=*/true);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(*written, folder_.path() + "/step-000000000020-2");
  EXPECT_EQ(folder_.LoadNewest(MakeManifest(0), "run-1")->manifest.step, 20);
  EXPECT_EQ(folder_.LoadNewest(MakeManifest(0), "run-1")->files.at("model.safetensors"),
            MakeFiles(20)[0].second);
  EXPECT_EQ(folder_.LoadNewest(MakeManifest(0), "run-2")->folder, *written);
  // Its own gives way, as anywhere.
  EXPECT_EQ(*folder_.Write(manifest, MakeFiles(22), /*beside_others=*/true), *written);
  EXPECT_THAT(Names(), SizeIs(3));
}

TEST_F(CheckpointFolderTest, DamagedCheckpointsOfOtherRunsWereRemoved) {
  fs::remove(newest_ + "/DONE");
  CheckpointManifest manifest = MakeManifest(30);
  manifest.run = "run-2";
  const auto written = folder_.Write(manifest, MakeFiles(30), /*beside_others=*/true);
  ASSERT_TRUE(folder_.Prune(1, "run-2", *written).ok());
  EXPECT_TRUE(fs::exists(newest_));
  EXPECT_THAT(Names(), SizeIs(3));
  ASSERT_TRUE(folder_.Prune(2, "").ok());
  EXPECT_FALSE(fs::exists(newest_));
}

// Another machine's clock was ahead, or this one's was set back.
TEST_F(CheckpointFolderTest, WithASlowClockEachNewCheckpointWasRemovedAsSoonAsItWasWritten) {
  for (const int64_t step : {30, 40, 50}) {
    CheckpointManifest manifest = MakeManifest(step);
    manifest.created_unix_ns = 5;
    const auto written = folder_.Write(manifest, MakeFiles(step));
    ASSERT_TRUE(written.ok()) << written.status();
    ASSERT_TRUE(folder_.Prune(1, "", *written).ok());
    EXPECT_TRUE(fs::exists(*written)) << step;
    EXPECT_EQ(LoadedStep(), step);
    EXPECT_THAT(Names(), SizeIs(1));
  }
}

TEST_F(CheckpointFolderTest, WhatWasJustWrittenIsKeptWhateverItsDate) {
  CheckpointManifest future = MakeManifest(25);
  future.created_unix_ns = INT64_MAX;
  ASSERT_TRUE(folder_.Write(future, MakeFiles(25)).ok());
  const auto written = folder_.Write(MakeManifest(30), MakeFiles(30));
  ASSERT_TRUE(folder_.Prune(1, "", *written).ok());
  EXPECT_TRUE(fs::exists(*written));
  EXPECT_THAT(Names(), SizeIs(1));
}

TEST_F(CheckpointFolderTest, AnotherOrderOfSamplesWasTakenForTheSame) {
  CheckpointManifest stored = MakeManifest(30);
  stored.order = {.shuffle = "Full", .last_batch = "Keep", .pipeline = "00000000000000aa"};
  ASSERT_TRUE(folder_.Write(stored, MakeFiles(30)).ok());
  CheckpointManifest job = stored;
  EXPECT_TRUE(folder_.LoadNewest(job, "").ok());
  job.order = {.shuffle = "Block of 1024", .last_batch = "Drop", .pipeline = "00000000000000bb"};
  const absl::Status status = folder_.LoadNewest(job, "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  for (const char* difference :
       {"dataset.shuffle Full (this job: Block of 1024)",
        "training.lastBatch Keep (this job: Drop)",
        "hash of the pipeline 00000000000000aa (this job: 00000000000000bb)"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(difference));
  }
}

// They have no fields for the order of samples.
TEST_F(CheckpointFolderTest, CheckpointsOfTheFirstVersionAreLoaded) {
  CheckpointManifest job = MakeManifest(0);
  job.order = {.shuffle = "Full", .last_batch = "Keep", .pipeline = "00000000000000aa"};
  EXPECT_EQ(folder_.LoadNewest(job, "")->manifest.step, 20);
}

TEST_F(CheckpointFolderTest, TheSameStepIsReplaced) {
  CheckpointManifest manifest = MakeManifest(20);
  manifest.generation = 7;
  ASSERT_TRUE(folder_.Write(manifest, MakeFiles(21)).ok());
  const auto loaded = folder_.LoadNewest(MakeManifest(0), "");
  EXPECT_EQ(loaded->manifest.generation, 7);
  EXPECT_EQ(loaded->files.at("model.safetensors"), MakeFiles(21)[0].second);
  EXPECT_THAT(Names(), SizeIs(2));
}

TEST_F(CheckpointFolderTest, AWriteThatFailsLeavesNothingAndTheOlderOnesGood) {
  absl::Status status;
  {
    const FileSizeLimit full(8192);
    status = folder_.Write(MakeManifest(30), MakeFiles(30)).status();
  }
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("model.safetensors"));
  EXPECT_THAT(Names(), SizeIs(2));
  EXPECT_EQ(LoadedStep(), 20);
}

TEST(CheckpointManifestTest, ComesBackAsItWasWritten) {
  CheckpointManifest manifest = MakeManifest(20);
  manifest.epoch = 1;
  manifest.next_slot = 112;
  manifest.evaluated_step = 13;
  manifest.samples_consumed = 312;
  manifest.world_size = 2;
  manifest.order = {.shuffle = "None", .last_batch = "Drop", .pipeline = "0123456789abcdef"};
  manifest.files = {{"model.safetensors", 30'000, 0xdeadbeef}};
  const auto parsed = ParseCheckpointManifest(ToJson(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ToJson(*parsed), ToJson(manifest));
}

TEST(SampleOrderTest, WhatChangesTheSamplesChangesItAndNothingElse) {
  const auto with = [](const std::vector<std::string>& overrides) {
    const api::ManifestResult parsed = api::ParseManifest(kOrderManifest, overrides);
    EXPECT_EQ(api::FormatErrors(parsed.errors), "");
    return job::SampleOrderOf(parsed.job);
  };
  const job::SampleOrder base = with({});
  EXPECT_EQ(base.shuffle, "Full");
  EXPECT_EQ(base.last_batch, "Keep");
  EXPECT_EQ(base, with({"pipeline=[{op: HorizontalFlip, placement: Trainer}, {op: Normalize}]"}));
  EXPECT_EQ(base, with({"training.epochs=7", "training.optimizer.learningRate=0.5"}));
  EXPECT_EQ(with({"dataset.shuffle={mode: Block, blockSize: 64}"}).shuffle, "Block of 64");
  EXPECT_EQ(with({"training.lastBatch=Drop"}).last_batch, "Drop");
  EXPECT_NE(with({"pipeline=[{op: Normalize}]"}).pipeline, base.pipeline);
  EXPECT_NE(with({"pipeline=[{op: HorizontalFlip, probability: 0.25}, {op: Normalize}]"}).pipeline,
            base.pipeline);
}

TEST(CheckpointManifestTest, MalformedOnesAreDataLoss) {
  for (const char* text :
       {"", "[]", "{}", "{\"formatVersion\": 1}", "{\"formatVersion\": \"1\"}"}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseCheckpointManifest(text).status())) << text;
  }
}

TEST(CheckpointManifestTest, NumbersThatDoNotFitAreDataLoss) {
  CheckpointManifest manifest = MakeManifest(20);
  manifest.files = {{"model.safetensors", 30'000, 0xdeadbeef}};
  const nlohmann::json good = nlohmann::json::parse(ToJson(manifest));
  for (const char* number : {"1e300", "1.5", "9223372036854775808", "true", "\"5\""}) {
    for (const char* field : {"/step", "/worldSize", "/input/1", "/files/0/bytes"}) {
      nlohmann::json bad = good;
      bad[nlohmann::json::json_pointer(field)] = nlohmann::json::parse(number);
      const absl::Status status = ParseCheckpointManifest(bad.dump()).status();
      EXPECT_TRUE(absl::IsDataLoss(status)) << field << " " << number;
      EXPECT_THAT(status.message(), HasSubstr("is missing or no"));
    }
  }
}

}  // namespace
}  // namespace hetero::train
