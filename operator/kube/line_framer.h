#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hetero::kube {

// Cuts a stream of bytes, in whatever pieces it comes, into lines without their ends ("\n" or
// "\r\n"). Empty lines are skipped. Not thread-safe.
class LineFramer {
 public:
  using OnLine = std::function<bool(std::string_view line)>;

  explicit LineFramer(size_t longest) : longest_(longest) {}

  // Calls `on_line` for each line that is complete now, until it returns false: then `stopped` is
  // true and nothing more is read. kResourceExhausted for a line above `longest` bytes.
  absl::Status Feed(std::string_view bytes, const OnLine& on_line);
  // The stream has ended: what is left is a line too.
  absl::Status End(const OnLine& on_line);
  bool stopped() const { return stopped_; }

 private:
  absl::Status Give(std::string_view line, const OnLine& on_line);

  size_t longest_;
  std::string partial_;
  bool stopped_ = false;
};

}  // namespace hetero::kube
