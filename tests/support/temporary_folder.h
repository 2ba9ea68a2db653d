#pragma once

#include <string>
#include <string_view>

namespace hetero::testing {

// A folder of its own under the system's temporary folder, removed with everything in it at the
// end.
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
