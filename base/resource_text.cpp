#include "base/resource_text.h"

#include <algorithm>
#include <charconv>

namespace hetero::base {
namespace {

constexpr size_t kMostChildren = 10'000;
constexpr uint64_t kMostCount = uint64_t{1} << 62;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n'; }

// The next word of `*text`, which it leaves behind; empty at the end.
std::string_view TakeWord(std::string_view* text) {
  size_t begin = 0;
  while (begin < text->size() && IsSpace((*text)[begin])) ++begin;
  size_t end = begin;
  while (end < text->size() && !IsSpace((*text)[end])) ++end;
  const std::string_view word = text->substr(begin, end - begin);
  text->remove_prefix(end);
  return word;
}

// The next line of `*text` without its end; false: there is none.
bool TakeLine(std::string_view* text, std::string_view* line) {
  if (text->empty()) return false;
  const size_t end = std::min(text->find('\n'), text->size());
  *line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return true;
}

std::optional<uint64_t> ToCount(std::string_view word) {
  uint64_t value = 0;
  const char* const end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, value);
  if (word.empty() || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return std::min(value, kMostCount);
}

std::optional<uint64_t> TakeCount(std::string_view* text) { return ToCount(TakeWord(text)); }

int64_t Sum(int64_t a, uint64_t b) {
  return static_cast<int64_t>(std::min(static_cast<uint64_t>(a) + b, kMostCount));
}

// Of the line that begins with this word.
std::optional<uint64_t> CountNamed(std::string_view text, std::string_view name) {
  std::string_view line;
  while (TakeLine(&text, &line)) {
    if (TakeWord(&line) == name) return TakeCount(&line);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ThreadTimes> ParseSchedstat(std::string_view text) {
  const std::optional<uint64_t> cpu = TakeCount(&text);
  const std::optional<uint64_t> wait = TakeCount(&text);
  if (!cpu || !wait) return std::nullopt;
  return ThreadTimes{.cpu_seconds = static_cast<double>(*cpu) * 1e-9,
                     .run_queue_seconds = static_cast<double>(*wait) * 1e-9};
}

std::optional<ProcessStat> ParseStat(std::string_view text, double ticks_per_second) {
  // Counted from the state, 0.
  constexpr int kUser = 11, kSystem = 12, kChildrenUser = 13, kChildrenSystem = 14, kStart = 19;
  const size_t begin = text.find('(');
  const size_t end = text.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
    return std::nullopt;
  }
  ProcessStat stat;
  stat.name = std::string(text.substr(begin + 1, end - begin - 1));
  text.remove_prefix(end + 1);
  for (int i = 0; i <= kStart; ++i) {
    const std::string_view word = TakeWord(&text);
    const bool own = i == kUser || i == kSystem;
    const bool of_children = i == kChildrenUser || i == kChildrenSystem;
    if (!own && !of_children && i != kStart) continue;
    const std::optional<uint64_t> ticks = ToCount(word);
    if (!ticks) return std::nullopt;
    const double seconds = static_cast<double>(*ticks) / ticks_per_second;
    if (own) stat.cpu_seconds += seconds;
    if (of_children) stat.children_cpu_seconds += seconds;
    if (i == kStart) stat.start_seconds = seconds;
  }
  return stat;
}

std::optional<int64_t> ParseResident(std::string_view text, int64_t page_bytes) {
  TakeWord(&text);
  const std::optional<uint64_t> pages = TakeCount(&text);
  if (!pages || *pages > kMostCount / static_cast<uint64_t>(page_bytes)) return std::nullopt;
  return static_cast<int64_t>(*pages) * page_bytes;
}

std::optional<DiskBytes> ParseIo(std::string_view text) {
  const std::optional<uint64_t> read = CountNamed(text, "read_bytes:");
  const std::optional<uint64_t> written = CountNamed(text, "write_bytes:");
  if (!read || !written) return std::nullopt;
  return DiskBytes{static_cast<int64_t>(*read), static_cast<int64_t>(*written)};
}

std::vector<CoreTimes> ParseCores(std::string_view text, double ticks_per_second) {
  constexpr int kIdle = 3, kIoWait = 4, kTimes = 8;  // guests' times are in the user's already
  constexpr std::string_view kCore = "cpu";
  std::vector<CoreTimes> cores;
  std::string_view line;
  while (TakeLine(&text, &line) && line.starts_with(kCore)) {
    const std::optional<uint64_t> index = ToCount(TakeWord(&line).substr(kCore.size()));
    if (!index || *index >= kMostCores) continue;  // the first line is all cores'
    CoreTimes times;
    for (int i = 0; i < kTimes; ++i) {
      const double seconds = static_cast<double>(TakeCount(&line).value_or(0)) / ticks_per_second;
      times.all_seconds += seconds;
      if (i != kIdle && i != kIoWait) times.busy_seconds += seconds;
    }
    if (cores.size() <= *index) cores.resize(*index + 1);
    cores[*index] = times;
  }
  return cores;
}

NetworkBytes ParseNetDev(std::string_view text) {
  constexpr int kSent = 8;  // counted from what was received, 0
  NetworkBytes sum;
  std::string_view line;
  while (TakeLine(&text, &line)) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view name = line.substr(0, colon);
    if (TakeWord(&name) == "lo") continue;
    line.remove_prefix(colon + 1);
    uint64_t sent = 0;
    const std::optional<uint64_t> received = TakeCount(&line);
    for (int i = 1; i <= kSent; ++i) sent = TakeCount(&line).value_or(0);
    sum.received = Sum(sum.received, received.value_or(0));
    sum.sent = Sum(sum.sent, sent);
  }
  return sum;
}

std::optional<double> ParseUptime(std::string_view text) {
  const std::string_view word = TakeWord(&text);
  const size_t point = word.find('.');
  const std::optional<uint64_t> seconds = ToCount(word.substr(0, point));
  if (!seconds || point == std::string_view::npos) return std::nullopt;
  const std::optional<uint64_t> hundredths = ToCount(word.substr(point + 1));
  if (!hundredths || word.size() != point + 3) return std::nullopt;
  return static_cast<double>(*seconds) + static_cast<double>(*hundredths) * 0.01;
}

std::optional<double> ParsePressure(std::string_view text) {
  constexpr std::string_view kTotal = "total=";  // microseconds
  std::string_view line;
  while (TakeLine(&text, &line)) {
    if (TakeWord(&line) != "some") continue;
    for (std::string_view word = TakeWord(&line); !word.empty(); word = TakeWord(&line)) {
      if (!word.starts_with(kTotal)) continue;
      const std::optional<uint64_t> total = ToCount(word.substr(kTotal.size()));
      if (total) return static_cast<double>(*total) * 1e-6;
    }
  }
  return std::nullopt;
}

std::optional<double> ParseThrottled(std::string_view text) {
  const std::optional<uint64_t> microseconds = CountNamed(text, "throttled_usec");
  if (!microseconds) return std::nullopt;
  return static_cast<double>(*microseconds) * 1e-6;
}

std::vector<pid_t> ParseChildren(std::string_view text) {
  std::vector<pid_t> children;
  for (std::string_view word = TakeWord(&text); !word.empty() && children.size() < kMostChildren;
       word = TakeWord(&text)) {
    const std::optional<uint64_t> pid = ToCount(word);
    if (pid && *pid > 0 && *pid < (uint64_t{1} << 31)) {
      children.push_back(static_cast<pid_t>(*pid));
    }
  }
  return children;
}

}  // namespace hetero::base
