#include "base/non_dumpable.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace hetero::base {
namespace {

constexpr uid_t kSomebody = 65534;

// Of /proc/PID/environ.
uid_t OwnerOfEnvironment(pid_t pid) {
  struct stat status {};
  EXPECT_EQ(stat(("/proc/" + std::to_string(pid) + "/environ").c_str(), &status), 0);
  return status.st_uid;
}

TEST(NonDumpableTest, ItsEnvironmentIsRootsAndItsChildrenAreAlike) {
  int to_child[2], to_parent[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(to_parent), 0);
  const pid_t child = fork();
  if (child == 0) {
    char word = 0;
    if (geteuid() == 0 && setuid(kSomebody) != 0) _exit(1);
    prctl(PR_SET_DUMPABLE, 1);  // a process that changes its user is not
    const bool begun = write(to_parent[1], "b", 1) == 1 && read(to_child[0], &word, 1) == 1;
    MakeNonDumpable();
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(prctl(PR_GET_DUMPABLE));
    int status = -1;
    waitpid(grandchild, &status, 0);
    const bool ended = write(to_parent[1], "e", 1) == 1 && read(to_child[0], &word, 1) == 1;
    _exit(begun && ended && WIFEXITED(status) ? WEXITSTATUS(status) : 2);
  }
  close(to_parent[1]);
  char word = 0;
  if (read(to_parent[0], &word, 1) != 1) {
    waitpid(child, nullptr, 0);
    GTEST_SKIP() << "there is no other user in this namespace";
  }
  EXPECT_EQ(OwnerOfEnvironment(child), geteuid() == 0 ? kSomebody : geteuid());
  ASSERT_EQ(write(to_child[1], "m", 1), 1);
  ASSERT_EQ(read(to_parent[0], &word, 1), 1);
  EXPECT_EQ(OwnerOfEnvironment(child), 0u);
  ASSERT_EQ(write(to_child[1], "m", 1), 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hetero::base
