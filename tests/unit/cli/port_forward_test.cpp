#include "cli/port_forward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "base/http_endpoint.h"
#include "tests/support/temporary_folder.h"

namespace hetero::cli {
namespace {

using ::testing::HasSubstr;

// A `kubectl` first in PATH that leaves its process id in the file "pid" and its arguments in
// "arguments", and then does `script`.
class PortForwardProcessTest : public ::testing::Test {
 protected:
  PortForwardProcessTest() : endpoint_(registry_) {
    const char* path = std::getenv("PATH");
    path_ = path != nullptr ? path : "";
    endpoint_.Handle("/report.json", [](const metrics::HttpRequest&) -> metrics::HttpResponse {
      return {.content_type = "application/json", .body = "{}"};
    });
    EXPECT_TRUE(endpoint_.Start("127.0.0.1", 0).ok());
    setenv("PATH", (folder_.path() + ":" + path_).c_str(), 1);
  }
  ~PortForwardProcessTest() override { setenv("PATH", path_.c_str(), 1); }

  void Kubectl(const std::string& script) {
    const std::string file = folder_.path() + "/kubectl";
    std::ofstream(file) << "#!/bin/sh\necho \"$@\" >" << folder_.path() << "/arguments\necho $$ >"
                        << folder_.path() << "/pid\n"
                        << script << "\n";
    chmod(file.c_str(), 0755);
  }
  std::string Forwarding() const {
    return "echo 'Forwarding from 127.0.0.1:" + std::to_string(endpoint_.port()) + " -> 7072'\n";
  }
  absl::StatusOr<std::unique_ptr<PortForward>> Open() {
    Options options;
    options.context = "team";
    return PortForward::Open(options, "vision", "vit-head-0", 7072, base::Clock::Real(), {});
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(folder_.path() + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // Within ten seconds.
  bool KubectlEnds() const {
    const pid_t pid = std::stoi(Read("pid"));
    for (int i = 0; i < 200; ++i) {
      if (kill(pid, 0) != 0) return true;
      base::Clock::Real().SleepFor(std::chrono::milliseconds(50));
    }
    return false;
  }

  const testing::TemporaryFolder folder_;
  std::string path_;
  metrics::Registry registry_;
  metrics::HttpEndpoint endpoint_;
};

TEST_F(PortForwardProcessTest, BringsThePageAndEndsWithItsObject) {
  Kubectl(Forwarding() + "exec sleep 1000");
  auto forward = Open();
  ASSERT_TRUE(forward.ok()) << forward.status();
  EXPECT_EQ(Read("arguments"),
            "port-forward --address=127.0.0.1 --namespace vision pod/vit-head-0 :7072 --context "
            "team\n");
  const auto page = (*forward)->Get("/report.json", {});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(*page, "{}");
  forward->reset();
  EXPECT_TRUE(KubectlEnds());
}

// A way past the pod's NetworkPolicy must not outlive its user, who may close the terminal.
TEST_F(PortForwardProcessTest, KubectlEndsWithAProcessThatIsKilled) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer allows no thread after fork()";
#endif
  Kubectl(Forwarding() + "exec sleep 1000");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto forward = Open();
    const char done = forward.ok() ? 'y' : 'n';
    if (write(ends[1], &done, 1) == 1) pause();
    _exit(1);
  }
  char done = 0;
  ASSERT_EQ(read(ends[0], &done, 1), 1);
  EXPECT_EQ(done, 'y');
  close(ends[0]);
  close(ends[1]);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(KubectlEnds());
}

TEST_F(PortForwardProcessTest, SaysWhatKubectlSays) {
  Kubectl("echo 'error: pods \"vit-head-0\" is forbidden' >&2; exit 1");
  EXPECT_THAT(std::string(Open().status().message()),
              HasSubstr("ended; it says: error: pods \"vit-head-0\" is forbidden"));
  setenv("PATH", "/nowhere", 1);
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("kubectl"));
}

// It says a line for each connection: whoever did not read them stopped it after a while.
TEST_F(PortForwardProcessTest, MuchThatKubectlSaysStopsNothing) {
  Kubectl(Forwarding() +
          "while true; do echo 'Handling connection for 40041 ..........................'; done");
  auto forward = Open();
  ASSERT_TRUE(forward.ok()) << forward.status();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE((*forward)->Get("/report.json", {}).ok());
    base::Clock::Real().SleepFor(std::chrono::milliseconds(10));
  }
}

// Somebody else may have its port by then.
TEST_F(PortForwardProcessTest, NothingIsAskedOnceKubectlHasEnded) {
  Kubectl(Forwarding() + "echo 'lost connection to pod' >&2; exit 1");
  auto forward = Open();
  absl::Status status = forward.status();
  for (int i = 0; i < 100 && status.ok(); ++i) {
    status = (*forward)->Get("/report.json", {}).status();
    base::Clock::Real().SleepFor(std::chrono::milliseconds(20));
  }
  EXPECT_THAT(std::string(status.message()), HasSubstr("lost connection to pod"));
}

}  // namespace
}  // namespace hetero::cli
