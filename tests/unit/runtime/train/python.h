#pragma once

#include <string>

namespace hetero::train {

struct PythonResult {
  int exit_code = -1;
  std::string output;  // standard output
};

// Runs tests/golden/`script` with the arguments (no spaces in them) by $HETERO_PYTHON, else by
// python3 with the libraries of tests/golden/readers.txt, if they could be installed.
PythonResult RunPython(const std::string& script, const std::string& arguments);

}  // namespace hetero::train
