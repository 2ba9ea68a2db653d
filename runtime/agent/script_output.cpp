#include "runtime/agent/script_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/thread.h"

namespace hetero::agent {
namespace {

constexpr size_t kTailBytes = 4096;
constexpr size_t kLongestLine = 16 << 10;  // longer ones are passed on in pieces
constexpr size_t kReadBytes = 16 << 10;
constexpr size_t kMostReads = 1024;     // more than the pipe holds
constexpr int kIdleMilliseconds = 100;  // also: how long a piece of a line waits for its rest

// Whoever reads it may be slow: then the script waits, as it would for a terminal.
void WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScriptOutput>> ScriptOutput::Open(Options options) {
  std::unique_ptr<ScriptOutput> output(new ScriptOutput(std::move(options)));
  if (const std::string& file = output->options_.log_file; !file.empty()) {
    output->log_ = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (output->log_ < 0) {
      return absl::UnavailableError(absl::StrCat("the script's log ", file, ": ", strerror(errno)));
    }
  }
  output->reader_ =
      std::jthread([raw = output.get()](const std::stop_token& stop) { raw->Run(stop); });
  return output;
}

ScriptOutput::~ScriptOutput() {
  reader_ = {};
  if (log_ >= 0) close(log_);
}

void ScriptOutput::Begin(int64_t generation) {
  const base::MutexLock lock(mutex_);
  PassOn(/*all=*/true);
  if (!tail_.empty()) {
    const std::string line = absl::StrCat("--- generation ", generation, " ---\n");
    Log(line.data(), line.size());
  }
  tail_.clear();
}

std::string ScriptOutput::TakeTail() {
  const base::MutexLock lock(mutex_);
  // What it has left behind may print on.
  for (size_t i = 0; i < kMostReads && ReadOnce(); ++i) {
  }
  PassOn(/*all=*/true);
  const size_t newline = tail_.size() < kTailBytes ? std::string::npos : tail_.find('\n');
  return newline == std::string::npos || newline + 1 == tail_.size() ? tail_
                                                                     : tail_.substr(newline + 1);
}

void ScriptOutput::Run(const std::stop_token& stop) {
  base::SetThreadName("script-output");
  while (!stop.stop_requested()) {
    pollfd wanted{.fd = options_.source, .events = POLLIN};
    const int ready = poll(&wanted, 1, kIdleMilliseconds);
    const base::MutexLock lock(mutex_);
    if (ready > 0 && ReadOnce()) continue;
    PassOn(/*all=*/true);
    if (ready > 0 && (wanted.revents & POLLHUP) != 0) return;
  }
}

bool ScriptOutput::ReadOnce() {
  char buffer[kReadBytes];
  const ssize_t count = read(options_.source, buffer, sizeof buffer);
  if (count <= 0) return false;
  const auto size = static_cast<size_t>(count);
  Log(buffer, size);
  recent_.Add({buffer, size});
  tail_.append(buffer, size);
  if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  if (options_.passed_to >= 0) {
    line_.append(buffer, size);
    PassOn(/*all=*/false);
  }
  return true;
}

// In one write, so that no line of another rank comes between.
void ScriptOutput::PassOn(bool all) {
  const size_t newline = line_.rfind('\n');
  size_t end = newline == std::string::npos ? 0 : newline + 1;
  if (all || line_.size() > kLongestLine) end = line_.size();
  if (end == 0) return;
  std::string out;
  for (size_t begin = 0; begin < end;) {
    const size_t line_end = std::min(line_.find('\n', begin), end - 1) + 1;
    if (begins_line_) out += options_.prefix;
    out.append(line_, begin, line_end - begin);
    begins_line_ = out.back() == '\n';
    begin = line_end;
  }
  line_.erase(0, end);
  WriteAll(options_.passed_to, out);
}

void ScriptOutput::Log(const char* data, size_t size) {
  if (log_ < 0 || logged_ >= options_.log_limit) return;
  const auto room = static_cast<size_t>(options_.log_limit - logged_);
  WriteAll(log_, {data, std::min(size, room)});
  logged_ += static_cast<int64_t>(size);
  if (logged_ < options_.log_limit) return;
  WriteAll(log_, absl::StrCat("\n--- no more is kept: the log has its ", options_.log_limit >> 20,
                              " MiB ---\n"));
}

}  // namespace hetero::agent
