// Which version and commit a program says it is.
#include "base/version.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "tests/integration/support/program_run.h"
#include "tests/support/paths.h"

namespace hetero {
namespace {

using testing::ReadFileOrDie;
using testing::RunProgram;
using testing::TemporaryFolder;
using testing::WriteFile;

// What `command` prints, without the last line break; the test fails when it does.
std::string OutputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << command;
  while (output.ends_with('\n')) output.pop_back();
  return output;
}

TEST(Version, ProgramsSayVersionAndCommit) {
  for (const std::string program : {"hetero-runtime", "kubectl-hetero"}) {
    const testing::ProgramResult result = RunProgram(program, {"--version"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output, program + " " + base::DescribeVersion() + "\n");
  }
}

// The script that every build runs, on sources of its own.
class CommitScriptTest : public ::testing::Test {
 protected:
  CommitScriptTest() { WriteFile(source_ / "code.cpp", "int one;\n"); }

  std::string Git(const std::string& arguments) {
    return OutputOf("git -C " + source_.path() +
                    " -c user.name=Test -c user.email=test@example.com " + arguments);
  }
  void Commit() {
    Git("init -q");
    Git("add .");
    Git("commit -q -m one");
  }
  // The commit in the file that the script writes.
  std::string Write(const std::string& named = "") {
    OutputOf("cmake -DSOURCE=" + source_.path() + " -DOUTPUT=" + File() + " -DCOMMIT=" + named +
             " -P " + testing::SourceDir() + "/cmake/WriteCommit.cmake");
    const std::string text = ReadFileOrDie(File());
    const size_t begin = text.find("kCommit[] = \"") + 13;
    return text.substr(begin, text.find('"', begin) - begin);
  }
  std::string File() const { return build_ / "commit.cpp"; }

  TemporaryFolder source_;
  TemporaryFolder build_;
};

TEST_F(CommitScriptTest, SaysWhatGitSays) {
  Commit();
  EXPECT_EQ(Write(), Git("rev-parse --short=7 HEAD"));
}

TEST_F(CommitScriptTest, SourcesThatWereChangedAreDirty) {
  Commit();
  WriteFile(source_ / "code.cpp", "int two;\n");
  EXPECT_EQ(Write(), Git("rev-parse --short=7 HEAD") + "-dirty");
}

TEST_F(CommitScriptTest, ATagIsNoCommit) {
  Commit();
  Git("tag -a -m release v9.8.7");
  EXPECT_EQ(Write(), Git("rev-parse --short=7 HEAD"));
}

TEST_F(CommitScriptTest, WithoutGitTheCommitIsTheOneNamedOrUnknown) {
  EXPECT_EQ(Write(), "unknown");
  EXPECT_EQ(Write("ce2b346"), "ce2b346");
  EXPECT_EQ(Write("ce2b34600112233445566778899aabbccddeeff0"), "ce2b346");
  EXPECT_EQ(Write("ce2b346-dirty"), "ce2b346-dirty");
}

TEST_F(CommitScriptTest, AFileThatIsRightAlreadyIsLeftAlone) {
  Commit();
  Write();
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(File(), long_ago);
  Write();
  EXPECT_EQ(std::filesystem::last_write_time(File()), long_ago);
}

}  // namespace
}  // namespace hetero
