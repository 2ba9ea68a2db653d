#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/head/event.h"

namespace hetero::head {

// What one event leads to, in order, as those who decide add it. Not thread-safe.
class Outbox {
 public:
  void Add(Action action) { actions_.push_back(std::move(action)); }
  void AddNote(bool warning, std::string message, const std::string& member = "") {
    actions_.push_back(Note{warning, std::move(message), member});
  }
  // All that was added since the last call.
  std::vector<Action> Take() { return std::exchange(actions_, {}); }

 private:
  std::vector<Action> actions_;
};

}  // namespace hetero::head
