#include "runtime/install/python_package.h"

#include <filesystem>
#include <system_error>

namespace hetero::install {
namespace {

namespace fs = std::filesystem;

fs::path Prefix(const std::string& program) {
  return fs::path(program).parent_path().parent_path();
}

}  // namespace

bool HoldsPackage(const std::string& folder) {
  std::error_code error;
  return fs::is_regular_file(fs::path(folder) / "hetero" / "__init__.py", error);
}

std::string InstalledPackage(const std::string& program) {
  for (const char* place : {"share/hetero/python", "python"}) {
    const std::string folder = (Prefix(program) / place).string();
    if (HoldsPackage(folder)) return folder;
  }
  return "";
}

std::string PackageOf(const std::string& program) {
  if (const std::string installed = InstalledPackage(program); !installed.empty()) return installed;
  const fs::path build = Prefix(program).parent_path();
  if (build.filename() != "build") return "";
  const std::string sources = (build.parent_path() / "python").string();
  return HoldsPackage(sources) ? sources : "";
}

}  // namespace hetero::install
