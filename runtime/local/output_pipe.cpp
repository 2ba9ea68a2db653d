#include "runtime/local/output_pipe.h"

#include <fcntl.h>
#include <unistd.h>

namespace hetero::local {

OutputPipe::OutputPipe() {
  if (pipe2(ends_, O_CLOEXEC) == 0) fcntl(ends_[0], F_SETFL, O_NONBLOCK);
}

OutputPipe::~OutputPipe() {
  for (const int end : ends_) {
    if (end >= 0) close(end);
  }
}

void OutputPipe::Forward(Console& console) {
  char buffer[4096];
  ssize_t count = 0;
  while ((count = read(ends_[0], buffer, sizeof buffer)) > 0) pending_.append(buffer, count);
  size_t end = 0;
  while ((end = pending_.find('\n')) != std::string::npos) {
    console.Line(pending_.substr(0, end));
    pending_.erase(0, end + 1);
  }
}

}  // namespace hetero::local
