#include "operator/kube/line_framer.h"

#include <utility>

namespace hetero::kube {

absl::Status LineFramer::Give(std::string_view line, const OnLine& on_line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.size() > longest_) {
    return absl::ResourceExhaustedError("a line of more than " + std::to_string(longest_) +
                                        " bytes");
  }
  if (!line.empty() && !on_line(line)) stopped_ = true;
  return absl::OkStatus();
}

absl::Status LineFramer::Feed(std::string_view bytes, const OnLine& on_line) {
  while (!stopped_) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) break;
    absl::Status status;
    if (partial_.empty()) {
      status = Give(bytes.substr(0, end), on_line);
    } else {
      partial_.append(bytes.substr(0, end));
      status = Give(std::exchange(partial_, std::string()), on_line);
    }
    if (!status.ok()) return status;
    bytes.remove_prefix(end + 1);
  }
  if (stopped_) return absl::OkStatus();
  partial_.append(bytes);
  // One more than the longest line: its "\r" may be among them.
  return partial_.size() > longest_ + 1 ? Give(partial_, on_line) : absl::OkStatus();
}

absl::Status LineFramer::End(const OnLine& on_line) {
  if (stopped_) return absl::OkStatus();
  return Give(std::exchange(partial_, std::string()), on_line);
}

}  // namespace hetero::kube
