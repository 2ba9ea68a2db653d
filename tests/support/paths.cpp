#include "tests/support/paths.h"

namespace hetero::testing {

const std::string& SourceDir() {
  static const std::string path = HETERO_SOURCE_DIR;
  return path;
}

const std::string& BinDir() {
  static const std::string path = HETERO_BIN_DIR;
  return path;
}

}  // namespace hetero::testing
