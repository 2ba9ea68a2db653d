#pragma once

#include <cstdint>
#include <string>

namespace hetero::feed {

// A CPU worker as the head's roster names it.
struct WorkerAddress {
  std::string name;         // "cpu-0"
  std::string address;      // gRPC target
  int64_t incarnation = 0;  // a new one under an old name is another process
  bool leaving = false;     // its machine is about to go: no new work

  bool SameProcess(const WorkerAddress& other) const {
    return name == other.name && address == other.address && incarnation == other.incarnation;
  }
};

}  // namespace hetero::feed
