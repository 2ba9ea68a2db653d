#include "runtime/install/program_path.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"

namespace hetero::install {
namespace {

namespace fs = std::filesystem;

fs::path Executable() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

bool IsLoader(const fs::path& file) {
  return absl::StartsWith(file.filename().string(), "ld-linux");
}

}  // namespace

std::string ProgramPath() {
  const fs::path executable = Executable();
  return IsLoader(executable) ? program_invocation_name : executable.string();
}

std::string ProgramFile() {
  const fs::path executable = Executable();
  if (!IsLoader(executable)) return executable.string();
  const fs::path launcher = program_invocation_name;
  return (launcher.parent_path().parent_path() / "libexec" / launcher.filename()).string();
}

}  // namespace hetero::install
