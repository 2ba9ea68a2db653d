#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "api/enums.h"
#include "api/unsupported_fields.h"
#include "runtime/source/dataset.h"
#include "runtime/source/uri.h"
#include "tests/unit/runtime/source/dataset_files.h"

namespace hetero::source {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status OpenStatus(const std::string& uri,
                        api::DatasetFormat format = api::DatasetFormat::kAuto) {
  api::DatasetSource source;
  source.uri = uri;
  source.format = format;
  return OpenDataset(source, job::Split::kTrain, 0).status();
}

TEST(ParseUriTest, AcceptsSyntheticAndAbsoluteFiles) {
  EXPECT_EQ(ParseUri("synthetic://")->scheme, Scheme::kSynthetic);
  EXPECT_EQ(ParseUri("file:///data/set")->path, "/data/set");
  EXPECT_EQ(ParseUri("file:///data/set//")->path, "/data/set");
  EXPECT_EQ(ParseUri("file:///data/50%20off")->path, "/data/50%20off");
  EXPECT_EQ(ParseUri("file:///")->path, "/");
  EXPECT_EQ(ParseUri("https://host/train.csv")->scheme, Scheme::kStore);
}

TEST(ParseUriTest, RefusesOthersWithTheRemedy) {
  const struct {
    const char* uri;
    absl::StatusCode code;
    const char* says;
  } kCases[] = {
      {"file://data/set", absl::StatusCode::kInvalidArgument, "must be absolute"},
      {"/data/set", absl::StatusCode::kInvalidArgument, "write file:///absolute/path"},
      {"", absl::StatusCode::kInvalidArgument, "write file:///absolute/path"},
      {"synthetic://x", absl::StatusCode::kInvalidArgument, "takes no path"},
  };
  for (const auto& test : kCases) {
    const absl::Status status = ParseUri(test.uri).status();
    EXPECT_EQ(status.code(), test.code) << test.uri;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.says));
    EXPECT_EQ(OpenStatus(test.uri), status);
  }
}

TEST(OpenDatasetTest, MissingFolderIsNamed) {
  const absl::Status status = OpenStatus("file:///no/such/folder");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/folder"));
}

TEST(OpenDatasetTest, EmptyFolderSaysWhatWasLookedFor) {
  const DatasetFolder folder;
  const absl::Status status = OpenStatus("file://" + folder.path());
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(folder.path()), HasSubstr("*-images-idx3-ubyte[.gz]"),
                    HasSubstr("one per class"), HasSubstr("found nothing")));
}

TEST(OpenDatasetTest, UnknownContentsAreListed) {
  const DatasetFolder folder;
  for (const char* name : {"a.bin", "b.bin", "c.bin", "d.bin", "e.bin", "f.bin"}) {
    folder.Write(name, std::string_view("x"));
  }
  const absl::Status status = OpenStatus("file://" + folder.path());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("found a.bin, b.bin, c.bin, d.bin, e.bin and 1 more"));
}

TEST(OpenDatasetTest, AFileInsteadOfAFolder) {
  const DatasetFolder folder;
  folder.Write("set.zip", std::string_view("x"));
  const absl::Status status = OpenStatus("file://" + folder / "set.zip");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is a file"));
}

TEST(OpenDatasetTest, FormatAndUriMustFit) {
  const DatasetFolder folder;
  const std::string uri = "file://" + folder.path();
  EXPECT_EQ(OpenStatus("synthetic://", api::DatasetFormat::kIdx).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OpenStatus(uri, api::DatasetFormat::kSynthetic).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OpenStatus(uri, api::DatasetFormat::kTfRecord).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(OpenStatus(uri, api::DatasetFormat::kIdx).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(OpenStatus(uri, api::DatasetFormat::kImageFolder).code(),
            absl::StatusCode::kInvalidArgument);
}

// Nothing is refused before a job starts (api) that would be read, nor the other way round.
TEST(OpenDatasetTest, EveryFormatOfTheManifestIsRead) {
  const std::string folder = ::testing::TempDir() + "hetero_empty_dataset";
  std::filesystem::create_directories(folder);
  for (const auto& [format, name] : api::EnumNames<api::DatasetFormat>::Values()) {
    api::HeteroTrainingJob job;
    job.spec.training.model.name = "mlp";
    job.spec.dataset.uri = "file://" + folder;
    job.spec.dataset.format = format;
    EXPECT_FALSE(absl::IsUnimplemented(OpenStatus(job.spec.dataset.uri, format))) << name;
    EXPECT_TRUE(api::UnsupportedFields(job).empty()) << name;
  }
}

}  // namespace
}  // namespace hetero::source
