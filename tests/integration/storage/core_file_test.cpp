// Which processes of a job that uses a bucket leave a core file when a signal ends them. The kernel
// gives it to a program or writes it elsewhere on some machines (core_pattern), so that none is
// found here in any case: what decides whether there is one is looked at in /proc on all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/integration/local/slow_job.h"
#include "tests/integration/storage/s3_server.h"
#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/temporary_folder.h"

namespace hetero::storage {
namespace {

using ::testing::IsEmpty;
using testing::LocalRun;
using ::testing::Not;

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience(90);
constexpr gid_t kGroupBesideRoot = 54321;

class CoreFile : public ::testing::Test {
 protected:
  // Processes work where the test does, in a folder in which nothing else lies.
  CoreFile() : before_(fs::current_path()) {
    server_.MakeBucket("bucket");
    fs::current_path(folder_.path());
    getrlimit(RLIMIT_CORE, &limit_);
    const rlimit most{.rlim_cur = limit_.rlim_max, .rlim_max = limit_.rlim_max};
    setrlimit(RLIMIT_CORE, &most);
  }
  ~CoreFile() override {
    if (geteuid() == 0 && setresgid(0, 0, 0) == 0) prctl(PR_SET_DUMPABLE, 1);
    setrlimit(RLIMIT_CORE, &limit_);
    fs::current_path(before_);
  }
  void SetUp() override {
    // Else nobody sees whether a file of /proc is root's or the process's own.
    if (geteuid() == 0) {
      if (setresgid(kGroupBesideRoot, kGroupBesideRoot, kGroupBesideRoot) != 0) {
        GTEST_SKIP() << "NOT RUN: root of this machine cannot start processes of another group: "
                     << strerror(errno);
      }
    }
    if (!MachineWritesCoreFilesHere()) {
      std::cerr << "CoreFile: core files of this machine ARE NOT LOOKED FOR, because they are not "
                   "written where a process works: "
                << testing::ReadFileOrDie("/proc/sys/kernel/core_pattern")
                << "What is looked at is whether processes can leave any\n";
    }
  }

  // An endless job that writes checkpoints into the bucket.
  std::vector<std::string> Job() const {
    return testing::SlowJob({"training.checkpoint={uri: 's3://bucket/checkpoints', everySteps: 2}",
                             "training.epochs=100000"});
  }
  std::vector<std::string> Access(const std::vector<std::string>& keys) const {
    std::vector<std::string> variables = keys;
    variables.push_back(absl::StrCat("AWS_ENDPOINT_URL=", server_.endpoint()));
    variables.push_back(absl::StrCat("AWS_REGION=", S3Server::kRegion));
    return variables;
  }
  static bool WaitForCheckpoint(LocalRun& run) {
    return run.WaitForLog("gpu-0", "wrote a checkpoint", kPatience);
  }
  std::vector<std::string> Found() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      found.push_back(entry.path().filename());
    }
    return found;
  }
  // Ends a process, and waits until the job's log says how it ended.
  static void End(LocalRun& run, const std::string& name, int signal) {
    const pid_t pid = run.PidOf(name);
    ASSERT_GT(pid, 0);
    kill(pid, signal);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (kill(pid, 0) == 0 && std::chrono::steady_clock::now() < end) usleep(10'000);
    ASSERT_NE(kill(pid, 0), 0) << name << " is still there";
  }
  // Such a process leaves no core file, wherever they go; its memory is root's alone.
  static bool IsNonDumpable(pid_t pid) {
    struct stat memory {};
    EXPECT_EQ(stat(absl::StrCat("/proc/", pid, "/mem").c_str(), &memory), 0) << pid;
    return memory.st_uid == 0 && memory.st_gid == 0;
  }
  bool MachineWritesCoreFilesHere() const {
    return limit_.rlim_max > 0 &&
           testing::ReadFileOrDie("/proc/sys/kernel/core_pattern").find_first_of("|/") ==
               std::string::npos;
  }

  S3Server server_;
  testing::TemporaryFolder folder_;
  const fs::path before_;
  rlimit limit_{};
};

TEST_F(CoreFile, IsLeftByNoProcessWithASecretInItsEnvironment) {
  LocalRun run(testing::SmallJobYaml(), Job(),
               Access({absl::StrCat("AWS_ACCESS_KEY_ID=", S3Server::kKey),
                       absl::StrCat("AWS_SECRET_ACCESS_KEY=", S3Server::kSecret)}));
  ASSERT_TRUE(WaitForCheckpoint(run));
  const std::pair<const char*, int> processes[] = {{"cpu-0", SIGSEGV},
                                                   {"cpu-1", SIGABRT},
                                                   {"gpu-1", SIGABRT},
                                                   {"gpu-0", SIGSEGV},
                                                   {"head", SIGQUIT}};
  EXPECT_TRUE(IsNonDumpable(run.program().pid())) << "hetero-runtime local";
  // All of them before the first ends: whoever takes a place is dumpable until its main().
  for (const auto& [name, signal] : processes) {
    EXPECT_TRUE(IsNonDumpable(run.PidOf(name))) << name;
  }
  for (const auto& [name, signal] : processes) {
    End(run, name, signal);
    EXPECT_THAT(Found(), IsEmpty()) << name;
  }
  run.program().Signal(SIGSEGV);
  EXPECT_EQ(run.Wait(kPatience).exit_code, 128 + SIGSEGV);
  EXPECT_THAT(Found(), IsEmpty()) << "hetero-runtime local";
}

// The trainer opens the bucket. A CPU worker has no credentials then, and shows that core files
// would be left, and found where the machine writes them here.
TEST_F(CoreFile, IsLeftByNoProcessThatOpensABucket) {
  const testing::TemporaryFolder home;
  const std::string profile = home.Write(
      "credentials", absl::StrCat("[default]\naws_access_key_id = ", S3Server::kKey,
                                  "\naws_secret_access_key = ", S3Server::kSecret, "\n"));
  LocalRun run(testing::SmallJobYaml(), Job(), Access({"AWS_SHARED_CREDENTIALS_FILE=" + profile}));
  ASSERT_TRUE(WaitForCheckpoint(run));
  EXPECT_TRUE(IsNonDumpable(run.PidOf("gpu-0")));
  EXPECT_FALSE(IsNonDumpable(run.PidOf("cpu-0")));
  End(run, "gpu-0", SIGSEGV);
  EXPECT_THAT(Found(), IsEmpty());
  End(run, "cpu-0", SIGSEGV);
  if (MachineWritesCoreFilesHere()) {
    EXPECT_THAT(Found(), Not(IsEmpty()));
  }
  run.program().Signal(SIGINT);
  EXPECT_EQ(run.Wait(kPatience).exit_code, 130);
  fs::remove(profile);  // the one place where a secret may be found
}

TEST_F(CoreFile, IsNotNeededByRootWhoseDebuggerIsLetIn) {
  if (geteuid() != 0) GTEST_SKIP() << "not run by root";
  LocalRun run(testing::SmallJobYaml(), Job(),
               Access({absl::StrCat("AWS_ACCESS_KEY_ID=", S3Server::kKey),
                       absl::StrCat("AWS_SECRET_ACCESS_KEY=", S3Server::kSecret)}));
  ASSERT_TRUE(WaitForCheckpoint(run));
  const pid_t pid = run.PidOf("gpu-0");
  EXPECT_EQ(ptrace(PTRACE_SEIZE, pid, nullptr, nullptr), 0);
  EXPECT_EQ(ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr), 0);
  EXPECT_EQ(waitpid(pid, nullptr, __WALL), pid);
  EXPECT_EQ(ptrace(PTRACE_DETACH, pid, nullptr, nullptr), 0);
  run.program().Signal(SIGINT);
  EXPECT_EQ(run.Wait(kPatience).exit_code, 130);
}

}  // namespace
}  // namespace hetero::storage
