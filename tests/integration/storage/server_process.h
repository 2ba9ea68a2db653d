#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace hetero::storage {

// A server of the tests, as a process that ends with this object, and with the test.
class ServerProcess {
 public:
  // Starts `words`, the first of which is found in PATH where it is no path, with what it prints in
  // the file `log`. Throws what it printed when it ends, or when `ready` is not true within 20 s.
  ServerProcess(const std::vector<std::string>& words, const std::string& log,
                const std::function<bool()>& ready);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

 private:
  pid_t pid_ = -1;
};

}  // namespace hetero::storage
