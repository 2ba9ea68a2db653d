#include "base/recent_lines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace hetero::log {
namespace {

constexpr char kEscape = '\x1b';

// Past a sequence of ECMA-48 that begins at `at`: ESC [ parameters final.
size_t EndOfEscape(std::string_view text, size_t at) {
  size_t end = at + 1;
  if (end >= text.size() || text[end] != '[') return std::min(end + 1, text.size());
  for (++end; end < text.size(); ++end) {
    if (text[end] >= '@' && text[end] <= '~') return end + 1;
  }
  return end;
}

// What a terminal shows at the end, as far as text goes.
std::string Plain(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (const size_t drawn = line.rfind('\r'); drawn != std::string_view::npos) {
    line.remove_prefix(drawn + 1);
  }
  std::string plain;
  for (size_t at = 0; at < line.size() && plain.size() <= RecentLines::kLongest;) {
    const auto byte = static_cast<unsigned char>(line[at]);
    if (line[at] == kEscape) {
      at = EndOfEscape(line, at);
      continue;
    }
    if (byte >= ' ' && byte != 0x7F) plain.push_back(line[at]);
    if (byte == '\t') plain.push_back(' ');
    ++at;
  }
  return base::ToUtf8(plain, RecentLines::kLongest);
}

}  // namespace

void RecentLines::Add(std::string_view line) {
  std::string plain = Plain(line);
  if (plain.empty()) return;
  const base::WallTime now = base::Clock::Real().WallNow();
  const base::MutexLock lock(mutex_);
  lines_.push_back({now, std::move(plain)});
  if (lines_.size() <= kMost) return;
  lines_.pop_front();
  ++left_out_;
}

std::vector<RecentLine> RecentLines::Take(size_t lines, size_t bytes) {
  std::deque<RecentLine> taken;
  size_t left_out = 0;
  {
    const base::MutexLock lock(mutex_);
    taken.swap(lines_);
    left_out = std::exchange(left_out_, 0);
  }
  size_t sum = 0;
  size_t first = taken.size();
  while (first > 0 && taken.size() - first < lines && sum + taken[first - 1].text.size() <= bytes) {
    sum += taken[--first].text.size();
  }
  left_out += first;
  std::vector<RecentLine> result;
  if (left_out > 0) {
    const base::WallTime time = taken.empty() ? base::WallTime() : taken.front().time;
    result.push_back({time, absl::StrCat("(", left_out, " lines are left out here)")});
  }
  for (; first < taken.size(); ++first) result.push_back(std::move(taken[first]));
  return result;
}

// Never destroyed: threads may log while the process ends.
RecentLines& LinesOfThisProcess() {
  static auto* const lines = new RecentLines;
  return *lines;
}

void LineCutter::Add(std::string_view bytes) {
  constexpr size_t kMostKept = 16 * RecentLines::kLongest;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    std::string_view part = bytes.substr(0, end);
    // A progress bar draws over itself; of a line without end its beginning is kept.
    if (const size_t drawn = part.rfind('\r');
        drawn != std::string_view::npos && drawn + 1 < part.size()) {
      part.remove_prefix(drawn + 1);
      line_.clear();
    }
    if (line_.size() < kMostKept) line_.append(part.substr(0, kMostKept));
    if (end == std::string_view::npos) return;
    if (!line_.empty()) to_.Add(prefix_ + line_);
    line_.clear();
    bytes.remove_prefix(end + 1);
  }
}

}  // namespace hetero::log
