#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/feed/wire/batch.h"

namespace hetero::agent {

// The files of memory, beside the arena, that one script was given, by the numbers under which it
// knows them. Not thread-safe.
class PassedFiles {
 public:
  struct Passed {
    int64_t number = 0;
    bool is_new = false;  // the script does not have it yet
  };
  Passed Pass(std::shared_ptr<const feed::MemoryFile> file);
  // Those in which no batch lies any more, and none will: only this object still has them. Each is
  // named once.
  std::vector<int64_t> Forget();

 private:
  struct Known {
    int64_t number = 0;
    std::shared_ptr<const feed::MemoryFile> file;
  };
  std::vector<Known> known_;
  int64_t last_ = 0;
};

}  // namespace hetero::agent
