#include "runtime/install/loaded_files.h"

#include <link.h>

#include <string_view>

namespace hetero::install {
namespace {

// The program itself has no name here, and the kernel's page no path.
int AddLibrary(dl_phdr_info* info, size_t, void* libraries) {
  const std::string_view name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  if (!name.empty() && name.front() == '/') {
    static_cast<std::vector<std::string>*>(libraries)->emplace_back(name);
  }
  return 0;
}

}  // namespace

std::vector<std::string> LoadedLibraries() {
  std::vector<std::string> libraries;
  dl_iterate_phdr(AddLibrary, &libraries);
  return libraries;
}

}  // namespace hetero::install
