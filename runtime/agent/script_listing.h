#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace hetero::agent {

// A script that runs, for whoever lists the processes of a job (runtime/local/process_set.h).
struct ListedScript {
  std::string role;
  int32_t index = 0;  // of its replica
  int32_t rank = 0;
  pid_t pid = 0;
};

// A file that says so, for as long as this object lives.
class ScriptListing {
 public:
  ScriptListing(std::string file, const ListedScript& script);
  ~ScriptListing();
  ScriptListing(const ScriptListing&) = delete;
  ScriptListing& operator=(const ScriptListing&) = delete;

 private:
  const std::string file_;
};

}  // namespace hetero::agent
