#pragma once

#include <string>

namespace hetero::train {

// A new folder in TMPDIR that goes, with what lies in it, when this object does.
class PassingFolder {
 public:
  PassingFolder();
  ~PassingFolder();
  PassingFolder(const PassingFolder&) = delete;
  PassingFolder& operator=(const PassingFolder&) = delete;

  const std::string& path() const { return path_; }  // empty: it could not be made

 private:
  std::string path_;
};

}  // namespace hetero::train
