#include "runtime/compare/read_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/compare/sample_runs.h"

namespace hetero::compare {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::WriteFile;

std::string ErrorOf(const std::string& place) {
  return std::string(ReadReport(place, {}).status().message());
}

TEST(ReadReport, TakesAFolderAFileAndAFileUri) {
  TemporaryFolder folder;
  WriteFile(folder / "report.json", ReportOfSlowRun().dump());
  for (const std::string& place :
       {folder / "", folder / "report.json", "file://" + (folder / "report.json")}) {
    const absl::StatusOr<RunReport> run = ReadReport(place, {});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->place, place);
    EXPECT_EQ(run->job, "photos");
  }
}

TEST(ReadReport, SaysWhatIsWrongWithAPlace) {
  TemporaryFolder folder;
  EXPECT_THAT(ErrorOf(folder / "none"), HasSubstr("none does not exist; give a run's"));
  std::filesystem::create_directories(folder / "running");
  EXPECT_THAT(ErrorOf(folder / "running"), HasSubstr("running has no report.json: its job still"));
  std::filesystem::create_directories(folder / "odd/report.json");
  EXPECT_THAT(ErrorOf(folder / "odd"), HasSubstr("cannot read the report: "));
  WriteFile(folder / "text", "hello");
  EXPECT_THAT(ErrorOf(folder / "text"), HasSubstr("text is no report: "));
  EXPECT_THAT(ErrorOf("ftp://host/run"), HasSubstr("ftp"));
}

// No memory is asked for it, and none of the disk: the file has no blocks.
TEST(ReadReport, RefusesAFileThatIsTooLongForAReport) {
  TemporaryFolder folder;
  const std::string file = folder / "report.json";
  WriteFile(file, "{");
  std::filesystem::resize_file(file, uintmax_t{1} << 40);
  EXPECT_THAT(ErrorOf(folder / ""), HasSubstr("is no report: it has more than 64 MiB; give a run"));
}

}  // namespace
}  // namespace hetero::compare
