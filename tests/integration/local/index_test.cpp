// hetero-runtime index: what it says, what it writes, and what it leaves alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/integration/local/datasets.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/paths.h"

namespace hetero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::InputDigest;
using ::testing::Not;
using testing::ProgramResult;
using testing::ProgramRun;
using testing::ReadFileOrDie;
using testing::RunProgram;
using testing::TemporaryFolder;
using testing::WriteFile;

namespace fs = std::filesystem;

const std::string kShards = testing::SourceDir() + "/tests/golden/datasets/tf_record";

class Index : public ::testing::Test {
 protected:
  Index() { fs::copy(kShards, data()); }
  std::string data() const { return folder_ / "data"; }
  std::string index() const { return data() + "/_index.hetero"; }
  ProgramResult Run(const std::string& source, const std::string& index) const {
    return RunProgram("hetero-runtime", {"index", source, index, "--label-offset", "-1"});
  }

  TemporaryFolder folder_;
};

TEST_F(Index, SaysWhatAManifestNeedsAndGivesTheSameStream) {
  const ProgramResult made = Run(data(), index());
  ASSERT_EQ(made.exit_code, 0) << made.output;
  EXPECT_THAT(
      made.output,
      AllOf(HasSubstr("12 samples in 2 shards\n"), HasSubstr("uri: file://" + data()),
            HasSubstr("format: TFRecord"), HasSubstr("samples: 12"), HasSubstr("classes: 3"),
            HasSubstr("offset: -1"), HasSubstr("index: {uri: file://" + index() + "}")));
  const std::string fields = ", fields: {label: {offset: -1}}";
  const std::string plain = "{uri: \"file://" + data() + "\"" + fields;
  EXPECT_EQ(InputDigest(plain + ", index: {build: Never, uri: \"file://" + index() + "\"}}"),
            InputDigest(plain + "}"));
}

TEST_F(Index, IsTheSameEachTime) {
  ASSERT_EQ(Run(data(), index()).exit_code, 0);
  ASSERT_EQ(Run(data(), folder_ / "other").exit_code, 0);
  EXPECT_EQ(ReadFileOrDie(index()), ReadFileOrDie(folder_ / "other"));
  const ProgramResult again = Run(data(), index());
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.output, HasSubstr("12 samples in 2 shards; the index was there already\n"));
}

TEST_F(Index, OfOtherShardsIsMadeAgain) {
  ASSERT_EQ(Run(data(), index()).exit_code, 0);
  const std::string before = ReadFileOrDie(index());
  fs::last_write_time(data() + "/pictures-00000-of-00002", fs::file_time_type::clock::now());
  const ProgramResult again = Run(data(), index());
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("12 samples in 2 shards\n"));
  EXPECT_NE(ReadFileOrDie(index()), before);
}

TEST_F(Index, WritesOverNothingElseAndNotAmongTheShards) {
  const std::string letter = folder_.Write("letter", "Dear reader, this is no index at all.");
  const ProgramResult refused = Run(data(), letter);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output, AllOf(HasSubstr(letter), HasSubstr("something else than an index")));
  EXPECT_THAT(ReadFileOrDie(letter), HasSubstr("Dear reader"));
  const ProgramResult among = Run(data(), data() + "/index");
  EXPECT_EQ(among.exit_code, 1);
  EXPECT_THAT(among.output, HasSubstr("name it file://" + data() + "/_index.hetero"));
}

TEST_F(Index, SaysBeforeItReadsThatItCannotBeWritten) {
  for (const char* place :
       {"file:///proc/none/index", "https://host.invalid/index", "s3://bucket"}) {
    const ProgramResult result = Run(data(), place);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.output, Not(HasSubstr("indexed"))) << place;
  }
}

TEST_F(Index, OfNothingIsNone) {
  WriteFile(folder_ / "empty/a.tar", std::string(10240, '\0'));
  const ProgramResult result =
      RunProgram("hetero-runtime", {"index", folder_ / "empty", folder_ / "index"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("hold no samples"));
  EXPECT_FALSE(fs::exists(folder_ / "index"));
}

// Whoever packs or inspects them, does not run a job.
TEST_F(Index, IsNotNeededToLookAtLargeShards) {
  WriteFile(data() + "/zz-00000-of-00001", "");
  fs::resize_file(data() + "/zz-00000-of-00001", 11'000'000'000);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"inspect", data()}, {"pack", data(), folder_ / "packed"}}) {
    const ProgramResult result = RunProgram("hetero-runtime", command);
    EXPECT_THAT(result.output, HasSubstr("begins no record")) << "it has been gone through";
  }
}

TEST_F(Index, OfAFormatWithItsOwnIsRefusedByName) {
  const ProgramResult result = RunProgram(
      "hetero-runtime",
      {"index", testing::SourceDir() + "/tests/golden/datasets/parquet", folder_ / "index"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("Parquet needs no index"));
}

}  // namespace
}  // namespace hetero
