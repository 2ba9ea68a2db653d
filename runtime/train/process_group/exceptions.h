#pragma once

#include <exception>
#include <stdexcept>
#include <string>

// What exceptions of LibTorch, of Gloo and of a model mean to a job: whether another rank is gone,
// so that the next generation may go on, or whether this rank's own work has failed and would fail
// again. No LibTorch type appears here.
namespace hetero::train {

// Ranks could not talk to each other: one was lost, or the connections were cut.
class CollectiveError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What `error` says, without the stack of LibTorch's own code.
std::string MessageOf(const std::exception& error);

// Of this process or of its GPU.
bool IsOutOfMemory(const std::exception& error);

// A CollectiveError, or one of the exceptions that only c10d and Gloo throw. These also come out of
// backward, where the model's own do too.
bool CameFromCollective(const std::exception& error);

// In a handler of `error`, which some exchange between ranks threw: throws it as a CollectiveError,
// unless it is no memory, or what LibTorch itself found wrong with the arguments.
[[noreturn]] void RethrowFromCollective(const std::exception& error);

// Runs `talk`, which does nothing but exchange something between ranks.
template <typename Talk>
auto Collectively(Talk&& talk) -> decltype(talk()) {
  try {
    return talk();
  } catch (const std::exception& error) {
    RethrowFromCollective(error);
  }
}

}  // namespace hetero::train
