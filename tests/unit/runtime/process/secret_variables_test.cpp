#include "runtime/process/secret_variables.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace hetero::process {
namespace {

constexpr const char* kSecretVariables[] = {"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
                                            "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                                            "HETERO_STORAGE_0_SECRET_ACCESS_KEY"};

// Of a child with this variable alone, once it has protected what it has.
bool IsDumpableWith(const char* variable) {
  const pid_t child = fork();
  if (child == 0) {
    for (const char* other : kSecretVariables) unsetenv(other);
    setenv(variable, "text", /*overwrite=*/1);
    prctl(PR_SET_DUMPABLE, 1);
    ProtectSecretVariables();
    _exit(prctl(PR_GET_DUMPABLE));
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status) != 0;
}

TEST(SecretVariablesTest, MakeTheirProcessNonDumpableAndOthersDoNot) {
  for (const char* secret : kSecretVariables) EXPECT_FALSE(IsDumpableWith(secret)) << secret;
  for (const char* other : {"AWS_ACCESS_KEY_ID", "AWS_REGION", "AWS_PROFILE", "HOME"}) {
    EXPECT_TRUE(IsDumpableWith(other)) << other;
  }
}

}  // namespace
}  // namespace hetero::process
