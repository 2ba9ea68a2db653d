#pragma once

#include <string>

namespace hetero::train {

struct PythonResult {
  int exit_code = -1;
  std::string output;  // standard output
};

// Runs tests/golden/`script` with the arguments (no spaces in them) by $HETERO_PYTHON, else
// python3.
PythonResult RunPython(const std::string& script, const std::string& arguments);

}  // namespace hetero::train
