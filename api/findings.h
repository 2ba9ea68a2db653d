#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/manifest.h"

namespace hetero::api {

// Collects what is wrong with one manifest. An object that could not be read whole is `broken`:
// rules over its fields would only repeat the first error in other words. Not for concurrent use.
class Findings {
 public:
  void Add(std::string path, std::string reason) {
    errors_.push_back({std::move(path), std::move(reason)});
  }
  void AddBroken(std::string path, std::string reason) {
    broken_.push_back(path);
    Add(std::move(path), std::move(reason));
  }
  // Whether the value at `path`, or anything inside it, could not be read.
  bool Broken(std::string_view path) const;
  // Whether something around `path` is missing or of a wrong type, and so the value is, too.
  bool Unread(std::string_view path) const;

  std::vector<FieldError>& errors() { return errors_; }

 private:
  std::vector<FieldError> errors_;
  std::vector<std::string> broken_;
};

}  // namespace hetero::api
