#include "base/version.h"

namespace hetero::base {

extern const char kCommit[];  // cmake/WriteCommit.cmake

const char* Commit() { return kCommit; }

std::string DescribeVersion() { return std::string(kVersion) + " (" + kCommit + ")"; }

std::string FullVersion(std::string_view version, std::string_view commit) {
  std::string text(version);
  if (!commit.empty() && commit != "unknown") text.append("+").append(commit);
  return text;
}

}  // namespace hetero::base
