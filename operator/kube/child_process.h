#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

// Programs that this one starts and ends.
namespace hetero::kube {

// Of a file; closed with this object.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  void Close();

 private:
  int fd_;
};

struct Pipe {
  Descriptor read, write;
};
// Neither end is passed on to programs. kResourceExhausted.
absl::StatusOr<Pipe> MakePipe();

struct ChildFiles {
  int input = -1;  // -1: /dev/null
  int output = -1, error = -1;
};

// Starts `command`, looked for in PATH unless it is a path, with `arguments` after it, the
// environment `variables` ("NAME=VALUE" each), no blocked signals and these files alone: it does
// not keep connections of this process open. In a process group of its own, so that whatever it
// starts can be ended with it (EndGroup). kUnavailable with the system's words.
absl::StatusOr<pid_t> StartProgram(const std::string& command,
                                   const std::vector<std::string>& arguments,
                                   const std::vector<std::string>& variables,
                                   const ChildFiles& files);

// Kills the group of a program and waits for the program itself.
void EndGroup(pid_t pid);

}  // namespace hetero::kube
