#include "tests/integration/storage/web_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>

#include "base/clock.h"
#include "tests/unit/base/test_certificates.h"

namespace hetero::storage {

WebServer::WebServer(const std::string& folder) {
  const base::TestAuthority authority;
  const base::TestAuthority::Leaf leaf = authority.Issue("server");
  folder_.Write("ca.pem", authority.certificate_pem());
  const std::string certificate = folder_.Write("server.pem", leaf.certificate_pem);
  const std::string key = folder_.Write("server.key", leaf.key_pem);
  const std::string port_file = folder_ / "port";
  const std::string program = HETERO_SOURCE_DIR "/tests/integration/storage/web_server.py";
  const int log = open((folder_ / "log").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execlp("python3", "python3", program.c_str(), folder.c_str(), certificate.c_str(), key.c_str(),
           port_file.c_str(), nullptr);
    _exit(127);
  }
  close(log);
  base::Clock& clock = base::Clock::Real();
  const base::Instant end = clock.Now() + std::chrono::seconds(20);
  while (!std::filesystem::exists(port_file)) {
    if (clock.Now() > end || waitpid(pid_, nullptr, WNOHANG) != 0) {
      throw std::runtime_error("the web server: " + testing::ReadFileOrDie(folder_ / "log"));
    }
    clock.SleepFor(std::chrono::milliseconds(20));  // another process has no event for that
  }
  port_ = testing::ReadFileOrDie(port_file);
}

WebServer::~WebServer() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

}  // namespace hetero::storage
