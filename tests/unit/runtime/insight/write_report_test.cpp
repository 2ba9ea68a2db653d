#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "runtime/insight/report.h"
#include "tests/unit/runtime/insight/sample_report.h"

namespace hetero::insight {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::string Content(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

std::set<std::string> Names(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

class WriteReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/write_report_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(WriteReportTest, CreatesTheFolderAndLeavesNothingElse) {
  const fs::path output = folder_ / "a" / "b";
  const absl::Status status = WriteReport(FullReport(), output);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(Names(output), UnorderedElementsAre("report.json", "report.html"));
  EXPECT_EQ(Content(output / "report.json"), ToJson(FullReport()));
  EXPECT_EQ(Content(output / "report.html"), ToHtml(FullReport()));
}

TEST_F(WriteReportTest, ReplacesAnEarlierReport) {
  Report report = FullReport();
  ASSERT_TRUE(WriteReport(report, folder_).ok());
  report.state = "Stopped";
  ASSERT_TRUE(WriteReport(report, folder_).ok());
  EXPECT_EQ(Content(folder_ / "report.json"), ToJson(report));
  EXPECT_THAT(Names(folder_), UnorderedElementsAre("report.json", "report.html"));
}

TEST_F(WriteReportTest, NamesAFileThatStandsWhereTheFolderShouldBe) {
  const fs::path output = folder_ / "file";
  std::ofstream(output) << "in the way";
  const absl::Status status = WriteReport(FullReport(), output / "run");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(output.string()));
  EXPECT_THAT(std::string(status.message()), HasSubstr("Not a directory"));
  EXPECT_EQ(Content(output), "in the way");
}

TEST_F(WriteReportTest, LeavesNoTemporaryFileBehindWhenARenameFails) {
  fs::create_directories(folder_ / "report.json" / "occupied");
  const absl::Status status = WriteReport(FullReport(), folder_);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr((folder_ / "report.json").string()));
  EXPECT_THAT(Names(folder_), UnorderedElementsAre("report.json"));
}

TEST_F(WriteReportTest, SaysThatTheFolderIsNotWritable) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  ASSERT_EQ(::chmod(folder_.c_str(), 0500), 0);
  const absl::Status status = WriteReport(FullReport(), folder_);
  ::chmod(folder_.c_str(), 0700);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("make the folder writable"));
}

// A limit on the size of files stops a write half way, as a full disk does.
TEST_F(WriteReportTest, KeepsTheEarlierReportWhenAWriteFailsHalfWay) {
  ASSERT_TRUE(WriteReport(FullReport(), folder_).ok());
  Report next = FullReport();
  next.state = "Stopped";

  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit low = {512, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  const absl::Status status = WriteReport(next, folder_);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr((folder_ / "report.json").string()));
  EXPECT_THAT(std::string(status.message()), HasSubstr("File too large"));
  EXPECT_EQ(Content(folder_ / "report.json"), ToJson(FullReport()));
  EXPECT_THAT(Names(folder_), UnorderedElementsAre("report.json", "report.html"));
}

TEST_F(WriteReportTest, NamesAFolderThatCannotBeCreated) {
  const absl::Status status = WriteReport(FullReport(), "/proc/no-such-folder");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot create folder /proc/no-such-folder"));
}

}  // namespace
}  // namespace hetero::insight
