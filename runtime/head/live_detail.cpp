#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/head/live_builder.h"
#include "runtime/insight/resource_use.h"

namespace hetero::head {
namespace {

constexpr int64_t kNanosecondsOfOne = 1'000'000;  // millisecond

live::MemberDetail::Column ColumnOf(const insight::UsePoint& point) {
  live::MemberDetail::Column column{
      .seconds = point.seconds, .span = point.span, .cores = point.core_busy, .gpus = {}};
  for (const insight::GpuPoint& gpu : point.gpus) {
    const double byte = std::clamp(gpu.utilization, 0.0, 1.0) * 255;
    column.gpus.push_back(static_cast<uint8_t>(byte + 0.5));
  }
  return column;
}

}  // namespace

std::optional<live::MemberDetail> BuildMemberDetail(const JobRecord& record,
                                                    const std::string& name, bool whole,
                                                    double after, Moment now) {
  const auto found = std::find_if(record.members.begin(), record.members.end(),
                                  [&name](const auto& entry) { return entry.second.name == name; });
  if (found == record.members.end()) return std::nullopt;
  const MemberUse& use = found->second.use;
  live::MemberDetail detail{.name = name, .seconds = AgeAt(record, now.steady)};
  const auto add = [&](const insight::UsePoint& point) {
    if (point.seconds > after) detail.columns.push_back(ColumnOf(point));
  };
  if (whole) {
    for (const insight::UsePoint& point : use.whole().points()) add(point);
  } else {
    for (const insight::UsePoint& point : use.recent()) add(point);
  }
  for (size_t group = 0; group < insight::kThreadGroups; ++group) {
    detail.groups.emplace_back(insight::NameOf(static_cast<insight::ThreadGroup>(group)));
    detail.group_seconds.push_back(use.totals().cpu_seconds[group]);
  }
  for (LogTails::Line& line : record.log_tails.Of(name)) {
    detail.log.push_back({.number = line.number,
                          .member = std::move(line.member),
                          .unix_ms = line.unix_ns / kNanosecondsOfOne,
                          .text = std::move(line.text)});
  }
  return detail;
}

}  // namespace hetero::head
