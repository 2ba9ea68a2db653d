#pragma once

#include <cstdint>
#include <string>
#include <tuple>

namespace hetero::feed {

// A CPU worker as the head's roster names it.
struct WorkerAddress {
  std::string name;         // "cpu-0"
  std::string address;      // gRPC target
  int64_t incarnation = 0;  // a new one under an old name is another process
  bool leaving = false;     // its machine is about to go: no new work

  // What tells one process from another.
  auto process() const { return std::tie(name, address, incarnation); }
  bool SameProcess(const WorkerAddress& other) const { return process() == other.process(); }
};

}  // namespace hetero::feed
