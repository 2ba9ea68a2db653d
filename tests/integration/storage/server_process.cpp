#include "tests/integration/storage/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>

#include "base/clock.h"
#include "tests/support/temporary_folder.h"

namespace hetero::storage {

ServerProcess::ServerProcess(const std::vector<std::string>& words, const std::string& log,
                             const std::function<bool()>& ready) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int output = open(log.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(output);
  base::Clock& clock = base::Clock::Real();
  const base::Instant end = clock.Now() + std::chrono::seconds(20);
  while (!ready()) {
    if (clock.Now() > end || waitpid(pid_, nullptr, WNOHANG) != 0) {
      throw std::runtime_error(words[0] + ": " + testing::ReadFileOrDie(log));
    }
    clock.SleepFor(std::chrono::milliseconds(20));  // another process has no event for that
  }
}

ServerProcess::~ServerProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

}  // namespace hetero::storage
