#include "base/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace hetero::base {
namespace {

using ::testing::HasSubstr;

int FilesIn(const std::filesystem::path& folder) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(AtomicFileTest, WritesReadsAndReplaces) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "report.json";
  const std::string bytes("a\0b\n", 4);
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  EXPECT_EQ(*ReadFile(path), bytes);
  const std::string large(300'000, 'x');
  ASSERT_TRUE(WriteFileAtomically(path, large).ok());
  EXPECT_EQ(*ReadFile(path), large);
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  EXPECT_EQ(*ReadFile(path), "");
  EXPECT_EQ(FilesIn(folder.path()), 1);
}

TEST(AtomicFileTest, MissingFileIsNotFoundByPath) {
  const auto bytes = ReadFile("/no/such/file");
  EXPECT_TRUE(absl::IsNotFound(bytes.status()));
  EXPECT_THAT(bytes.status().message(), HasSubstr("/no/such/file"));
  EXPECT_THAT(bytes.status().message(), HasSubstr("No such file"));
}

TEST(AtomicFileTest, ASparseFileOf300GigabytesTakesNoMemory) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "job.yaml";
  ASSERT_TRUE(WriteFileAtomically(path, "kind: job").ok());
  EXPECT_EQ(*ReadFile(path, 9), "kind: job");
  EXPECT_TRUE(absl::IsOutOfRange(ReadFile(path, 8).status()));
  ASSERT_EQ(truncate(path.c_str(), int64_t{300} << 30), 0);
  const absl::Status status = ReadFile(path).status();
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(path + ": it has 322122547200 bytes"));
}

TEST(AtomicFileTest, MissingFolderIsNamed) {
  const absl::Status status = WriteFileAtomically("/no/such/folder/file", "x");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(status.message(), HasSubstr("/no/such/folder/file"));
}

// A full disk, simulated by the limit on the size of files.
TEST(AtomicFileTest, FailedWriteLeavesTheOldFileAndNothingElse) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "checkpoint";
  ASSERT_TRUE(WriteFileAtomically(path, "old").ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1000, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteFileAtomically(path, std::string(5000, 'n'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("cannot write " + path));
  EXPECT_THAT(status.message(), HasSubstr("File too large"));
  EXPECT_EQ(*ReadFile(path), "old");
  EXPECT_EQ(FilesIn(folder.path()), 1);
}

TEST(AtomicFileTest, FolderInThePlaceOfTheFileIsAnError) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "taken";
  folder.Write("taken/inside", "x");
  EXPECT_THAT(WriteFileAtomically(path, "y").message(), HasSubstr("cannot rename"));
  EXPECT_EQ(FilesIn(folder.path()), 1);
}

}  // namespace
}  // namespace hetero::base
