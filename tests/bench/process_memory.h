#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>

namespace hetero::bench {

// Watches this process's descendants from construction to Stop(): what those whose command line
// holds none of `left_out` have resident together, shared pages counted once (PSS).
class MemoryWatch {
 public:
  explicit MemoryWatch(std::set<std::string> left_out)
      : left_out_(std::move(left_out)), watcher_([this](std::stop_token stop) {
          while (!stop.stop_requested()) {
            most_ = std::max(most_, TogetherMib());
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
        }) {}
  // The most at any sample, in MiB.
  double Stop() {
    watcher_ = {};
    return most_;
  }

 private:
  double TogetherMib() const {
    std::map<int, int> parents;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      std::ifstream status(entry.path() / "status");
      for (std::string word; status >> word;) {
        if (word == "PPid:" && status >> parents[std::stoi(name)]) break;
      }
    }
    double kib = 0;
    for (const auto& [pid, parent] : parents) {
      int above = parent;
      while (above > 1 && above != getpid()) above = parents.contains(above) ? parents[above] : 0;
      if (above == getpid() && Counts(pid)) kib += PssKib(pid);
    }
    return kib / 1024;
  }
  bool Counts(int pid) const {
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
    for (std::string word; std::getline(file, word, '\0');) {
      if (left_out_.contains(word)) return false;
    }
    return true;
  }
  static double PssKib(int pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
    double kib = 0;
    for (std::string word; file >> word;) {
      if (word == "Pss:" && file >> kib) return kib;
    }
    return 0;  // it has just ended
  }

  const std::set<std::string> left_out_;
  double most_ = 0;  // the watcher's until it is joined
  std::jthread watcher_;
};

}  // namespace hetero::bench
