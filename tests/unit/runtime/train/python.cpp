#include "tests/unit/runtime/train/python.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "tests/support/paths.h"

namespace hetero::train {

PythonResult RunPython(const std::string& script, const std::string& arguments) {
  const char* python = std::getenv("HETERO_PYTHON");
  // The libraries of tests/golden/readers.txt are the machine's python3's.
  const std::string interpreter =
      python != nullptr ? python : "PYTHONPATH=" HETERO_PYTHON_READERS " python3";
  const std::string command =
      interpreter + " " + testing::SourceDir() + "/tests/golden/" + script + " " + arguments;
  PythonResult result;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer;
  while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) {
    result.output.append(buffer.data(), n);
  }
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

}  // namespace hetero::train
