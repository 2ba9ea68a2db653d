#include "runtime/head/log_tails.h"

#include <algorithm>
#include <utility>

#include "runtime/head/text_limits.h"

namespace hetero::head {

void LogTails::Take(const std::string& member, const v1::Heartbeat& heartbeat) {
  int told = 0;
  for (const v1::LogLine& line : heartbeat.log_lines()) {
    if (++told > kMostTold) return;
    Line kept{.number = ++count_, .member = member, .unix_ns = line.unix_ns(), .text = line.text()};
    LimitText(kMaxListedText, kept.text);
    Add(std::move(kept));
  }
}

void LogTails::Add(Line line) {
  newest_.push_back(line);
  if (newest_.size() > kNewest) newest_.pop_front();
  Tail& tail = tails_[line.member];
  tail.bytes += line.text.size();
  bytes_ += line.text.size();
  tail.lines.push_back(std::move(line));
  if (tail.lines.size() > kLinesOfMember) DropOldest(tail);
  while (bytes_ > kMostBytes) {
    DropOldest(std::max_element(tails_.begin(), tails_.end(), [](const auto& a, const auto& b) {
                 return a.second.bytes < b.second.bytes;
               })->second);
  }
}

void LogTails::DropOldest(Tail& tail) {
  const size_t bytes = tail.lines.front().text.size();
  tail.lines.pop_front();
  tail.bytes -= bytes;
  bytes_ -= bytes;
}

std::vector<LogTails::Line> LogTails::Of(const std::string& member) const {
  const auto tail = tails_.find(member);
  if (tail == tails_.end()) return {};
  return {tail->second.lines.begin(), tail->second.lines.end()};
}

}  // namespace hetero::head
