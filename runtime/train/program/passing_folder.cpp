#include "runtime/train/program/passing_folder.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace hetero::train {

PassingFolder::PassingFolder() {
  std::error_code error;
  std::string path = (std::filesystem::temp_directory_path(error) / "hetero-XXXXXX").string();
  if (mkdtemp(path.data()) != nullptr) path_ = std::move(path);
}

PassingFolder::~PassingFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace hetero::train
