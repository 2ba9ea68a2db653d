#include "runtime/local/output_pipe.h"

#include <fcntl.h>
#include <unistd.h>

namespace hetero::local {
namespace {

constexpr size_t kMostAtOnce = 1 << 20;  // bytes; others wait for the launcher, too
constexpr size_t kLongestLine = 64 << 10;

}  // namespace

OutputPipe::OutputPipe() {
  if (pipe2(ends_, O_CLOEXEC) != 0) return;
  fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  // The launcher looks at it fifty times a second, and a script may print much.
  fcntl(ends_[0], F_SETPIPE_SZ, static_cast<int>(kMostAtOnce));
}

OutputPipe::~OutputPipe() {
  for (const int end : ends_) {
    if (end >= 0) close(end);
  }
}

// A script may print without end, and without ends of lines.
void OutputPipe::Forward(const std::function<void(const std::string&)>& print) {
  char buffer[4096];
  ssize_t count = 0;
  size_t taken = 0;
  while (taken < kMostAtOnce && (count = read(ends_[0], buffer, sizeof buffer)) > 0) {
    pending_.append(buffer, count);
    taken += static_cast<size_t>(count);
  }
  size_t begin = 0;
  for (size_t end = 0; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    print(pending_.substr(begin, end - begin));
  }
  pending_.erase(0, begin);
  if (pending_.size() < kLongestLine) return;
  print(pending_);
  pending_.clear();
}

}  // namespace hetero::local
