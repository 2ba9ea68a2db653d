#pragma once

#include <string>
#include <string_view>

namespace hetero::testing {

// Whether somebody searches what tests leave and removes it then: HETERO_TEST_KEEP_FOLDERS is set.
bool KeepsFolders();

// A folder of its own under the system's temporary folder, removed with everything in it at the
// end, unless it is kept.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // WriteFile() in this folder; returns the file's path.
  std::string Write(const std::string& name, std::string_view bytes) const;

 private:
  std::string path_;
};

// Overwrites; makes the folders on the way. Throws where that fails.
void WriteFile(const std::string& path, std::string_view bytes);
// Throws where there is no such file.
std::string ReadFileOrDie(const std::string& path);

}  // namespace hetero::testing
