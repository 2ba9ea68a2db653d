#include "tests/integration/support/program_run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <thread>

#include "tests/support/paths.h"

extern char** environ;

namespace hetero::testing {
namespace {

constexpr std::chrono::milliseconds kPoll(20);

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ProgramRun::ProgramRun(const std::string& program, std::vector<std::string> arguments,
                       const std::vector<std::string>& environment) {
  const std::string path = testing::BinDir() + "/" + program;
  arguments.insert(arguments.begin(), path);
  std::vector<std::string> variables = environment;
  for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, (folder_ / "output").c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  const int error = posix_spawn(&pid_, path.c_str(), &files, nullptr, Pointers(arguments).data(),
                                Pointers(variables).data());
  posix_spawn_file_actions_destroy(&files);
  EXPECT_EQ(error, 0) << "cannot start " << path;
  ended_ = error != 0;
}

ProgramRun::~ProgramRun() {
  if (ended_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, &status_, 0);
}

void ProgramRun::Signal(int signal) {
  if (!ended_) kill(pid_, signal);
}

bool ProgramRun::running() {
  if (!ended_) ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return !ended_;
}

ProgramResult ProgramRun::Wait(std::chrono::seconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (running()) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "still running after " << deadline.count() << " s, output so far:\n"
                    << ReadFileOrDie(folder_ / "output");
      kill(pid_, SIGKILL);
      waitpid(pid_, &status_, 0);
      ended_ = true;
      break;
    }
    std::this_thread::sleep_for(kPoll);
  }
  ProgramResult result;
  result.exit_code = WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
  result.output = ReadFileOrDie(folder_ / "output");
  return result;
}

ProgramResult RunProgram(const std::string& program, std::vector<std::string> arguments,
                         std::chrono::seconds deadline) {
  return ProgramRun(program, std::move(arguments)).Wait(deadline);
}

LocalRun::LocalRun(const std::string& manifest, const std::vector<std::string>& arguments,
                   const std::vector<std::string>& environment) {
  WriteFile(folder_ / "job.yaml", manifest);
  std::vector<std::string> all = {"local", folder_ / "job.yaml", "--output", output()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  program_ = std::make_unique<ProgramRun>("hetero-runtime", all, environment);
}

pid_t LocalRun::PidOf(const std::string& name) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    std::ifstream file(output() + "/processes.json");
    const nlohmann::json list = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (list.is_array()) {
      for (const nlohmann::json& entry : list) {
        if (entry["name"] == name) return entry["pid"].get<pid_t>();
      }
    }
    std::this_thread::sleep_for(kPoll);
  }
  ADD_FAILURE() << name << " never appeared in processes.json";
  return std::numeric_limits<pid_t>::max();
}

bool LocalRun::WaitForLog(const std::string& name, const std::string& text,
                          std::chrono::seconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (std::chrono::steady_clock::now() < end) {
    const bool running = program().running();  // before the look: what it wrote last counts
    if (log(name).find(text) != std::string::npos) return true;
    if (!running) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return false;
}

nlohmann::json LocalRun::report() const {
  return nlohmann::json::parse(ReadFileOrDie(output() + "/report.json"));
}

std::string LocalRun::log(const std::string& name) const {
  const std::string path = output() + "/logs/" + name + ".log";
  return std::filesystem::exists(path) ? ReadFileOrDie(path) : "";
}

}  // namespace hetero::testing
