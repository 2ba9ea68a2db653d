// `hetero-runtime install`: the copy starts where there is nothing else, and every way in which it
// can fail is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/version.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/paths.h"

namespace hetero {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::ProgramResult;
using testing::ReadFileOrDie;
using testing::RunProgram;
using testing::TemporaryFolder;
using testing::WriteFile;

// As root in a mount namespace of its own, so that nothing stays mounted.
ProgramResult ShellApart(const std::string& script) {
  TemporaryFolder folder;
  const std::string shell = geteuid() == 0 ? "unshare --mount sh " : "sh ";
  const std::string command = shell + folder.Write("script", script) + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  ProgramResult result;
  if (pipe == nullptr) return result;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    result.output += static_cast<char>(c);
  }
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

class Install : public ::testing::Test {
 protected:
  Install() {
    WriteFile(package() + "/hetero/__init__.py", "name = 'hetero'\n");
    WriteFile(package() + "/hetero/py.typed", "");
    WriteFile(package() + "/hetero/__pycache__/__init__.pyc", "of another machine");
    WriteFile(package() + "/tests/test_all.py", "");
  }

  std::string package() const { return folder_ / "package"; }
  std::string target() const { return folder_ / "hetero"; }
  ProgramResult Run(const std::string& to) {
    return RunProgram("hetero-runtime", {"install", to, "--package", package()});
  }

  TemporaryFolder folder_;
};

TEST_F(Install, TheCopyStartsWhereThereIsNoCLibrary) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT RUN: changing the root folder needs root";
  const ProgramResult installed = Run(target());
  ASSERT_EQ(installed.exit_code, 0) << installed.output;
  EXPECT_THAT(installed.output, HasSubstr(target() + "/python"));
  fs::create_directories(target() + "/proc");
  const ProgramResult alone = ShellApart("mount --bind /proc " + target() + "/proc && chroot " +
                                         target() + " /bin/hetero-runtime --version");
  EXPECT_EQ(alone.exit_code, 0);
  EXPECT_EQ(alone.output, "hetero-runtime " + base::DescribeVersion() + "\n");
}

TEST_F(Install, WhatACopyInstallsIsWhole) {
  ASSERT_EQ(Run(target()).exit_code, 0);
  const std::string second = folder_ / "second";
  const ProgramResult again =
      ShellApart(target() + "/bin/hetero-runtime install " + second + " && rm -r " + target() +
                 " && " + second + "/bin/hetero-runtime --version");
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("hetero-runtime " + base::DescribeVersion() + "\n"));
  EXPECT_EQ(ReadFileOrDie(second + "/python/hetero/__init__.py"), "name = 'hetero'\n");
}

TEST_F(Install, HoldsThePackageAloneAndEverybodyMayReadIt) {
  ASSERT_EQ(Run(target()).exit_code, 0);
  EXPECT_EQ(ReadFileOrDie(target() + "/python/hetero/__init__.py"), "name = 'hetero'\n");
  EXPECT_TRUE(fs::exists(target() + "/python/hetero/py.typed"));
  EXPECT_FALSE(fs::exists(target() + "/python/hetero/__pycache__"));
  EXPECT_FALSE(fs::exists(target() + "/python/tests"));
  struct stat info;
  ASSERT_EQ(stat((target() + "/python/hetero/__init__.py").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644u);
  ASSERT_EQ(stat((target() + "/libexec/hetero-runtime").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0755u);
}

TEST_F(Install, ASecondRunMendsAndRepeatsNothing) {
  ASSERT_EQ(Run(target()).exit_code, 0);
  const std::string program = target() + "/libexec/hetero-runtime";
  const std::string library = target() + "/lib/libc.so.6";
  const std::string good = ReadFileOrDie(library);
  struct stat before, after;
  ASSERT_EQ(stat(program.c_str(), &before), 0);
  std::string damaged = good;
  damaged[damaged.size() / 2] ^= 1;
  WriteFile(library, damaged);

  ASSERT_EQ(Run(target()).exit_code, 0);
  EXPECT_EQ(ReadFileOrDie(library), good);
  ASSERT_EQ(stat(program.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino) << "an intact file was written again";
}

// Scripts get the environment of their image, the package first; the program itself takes none of
// its libraries.
TEST_F(Install, TheEnvironmentStaysThatOfTheImage) {
  ASSERT_EQ(Run(target()).exit_code, 0);
  fs::copy_file(target() + "/bin/hetero-runtime", target() + "/bin/env");
  fs::copy_file("/usr/bin/env", target() + "/libexec/env");
  const ProgramResult with =
      ShellApart("LD_PRELOAD=/app/a.so LD_LIBRARY_PATH=/app/lib PYTHONPATH=/app:/more exec " +
                 target() + "/bin/env | grep -e LD_ -e PYTHONPATH | sort");
  EXPECT_THAT(with.output, HasSubstr("HETERO_SCRIPT_LD_PRELOAD=/app/a.so\n"
                                     "LD_LIBRARY_PATH=/app/lib\n"
                                     "PYTHONPATH=" +
                                     target() + "/python:/app:/more\n"));
  EXPECT_THAT(with.output, ::testing::Not(HasSubstr("\nLD_PRELOAD")));
  const ProgramResult without =
      ShellApart("unset PYTHONPATH; exec " + target() + "/bin/env | grep PYTHONPATH");
  EXPECT_EQ(without.output, "PYTHONPATH=" + target() + "/python\n");
}

TEST_F(Install, AVolumeThatCannotHoldOrRunItIsNamed) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT RUN: mounting a small file system needs root";
  const auto on = [this](const std::string& options) {
    return ShellApart("mkdir -p " + target() + " && mount -t tmpfs -o " + options + " none " +
                      target() + " && " + testing::BinDir() + "/hetero-runtime install " +
                      target() + " --package " + package());
  };
  const ProgramResult full = on("size=4m");
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.output, HasSubstr("the volume of " + target() + " is full"));
  const ProgramResult not_run = on("size=256m,noexec");
  EXPECT_EQ(not_run.exit_code, 1);
  EXPECT_THAT(not_run.output, HasSubstr(target() + " is mounted noexec"));
  const ProgramResult read_only = on("size=256m,ro");
  EXPECT_EQ(read_only.exit_code, 1);
  EXPECT_THAT(read_only.output, HasSubstr("this user must be able to write to " + target()));
}

TEST_F(Install, APackageThatIsNotThereIsNamed) {
  const ProgramResult result =
      RunProgram("hetero-runtime", {"install", target(), "--package", folder_ / "nothing"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("the Python package is not in " + (folder_ / "nothing")));
  EXPECT_FALSE(fs::exists(target())) << "found before anything is copied";
}

}  // namespace
}  // namespace hetero
