#include "cli/member_table.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "api/job_resource.h"
#include "api/labels.h"
#include "api/role_type.h"
#include "base/json_access.h"
#include "cli/sections.h"
#include "cli/text.h"

namespace hetero::cli {
namespace {

using base::FieldOf;
using base::ListOf;
using base::TextOf;
using nlohmann::json;

constexpr double kWaitsMuch = 10;  // percent; the head's own verdict goes by the same
constexpr size_t kLongestMissing = 400;
constexpr char kUnknown[] = "-";

struct PodState {
  std::string word;
  std::optional<int64_t> restarts;
};

std::string WordOf(const json& state) {
  if (FieldOf(state, "running").is_object()) return "Running";
  for (const char* other : {"waiting", "terminated"}) {
    const std::string reason = TextOf(FieldOf(state, other), "reason");
    if (!reason.empty()) return reason;
  }
  return "";
}

PodState StateOf(const json& pod) {
  const json& status = FieldOf(pod, "status");
  PodState state{.word = TextOf(status, "phase"), .restarts = {}};
  for (const json& container : ListOf(status, "containerStatuses")) {
    if (TextOf(container, "name") != api::kRuntimeContainer) continue;
    state.restarts = base::IntegerOf(container, "restartCount");
    const std::string word = WordOf(FieldOf(container, "state"));
    if (!word.empty()) state.word = word;
  }
  for (const json& condition : ListOf(status, "conditions")) {
    const std::string reason = TextOf(condition, "reason");
    const bool unplaced = TextOf(condition, "type") == "PodScheduled" &&
                          TextOf(condition, "status") == "False" && !reason.empty();
    if (unplaced) state.word = reason;
  }
  if (FieldOf(FieldOf(pod, "metadata"), "deletionTimestamp").is_string()) {
    state.word = "Terminating";
  }
  if (state.word.empty()) state.word = "Pending";
  return state;
}

std::string Rate(const std::optional<double>& value) {
  return value ? absl::StrFormat("%.1f", *value) : kUnknown;
}

std::string Percent(const std::optional<double>& value) {
  return value ? absl::StrFormat("%.1f%%", *value) : kUnknown;
}

std::string Memory(const Member& member) {
  if (!member.memory_bytes) return kUnknown;
  constexpr double kMebi = 1024.0 * 1024.0;
  const double mebi = *member.memory_bytes / kMebi;
  return absl::StrCat(
      member.memory_is_peak ? "<" : "",
      mebi < 10240 ? absl::StrFormat("%.0fMi", mebi) : absl::StrFormat("%.1fGi", mebi / 1024));
}

std::string Bottleneck(const TopView& view) {
  const api::JobStatus& status = view.job.status;
  if (!view.verdict.empty()) return Plain(view.verdict);
  if (!status.Is(api::ConditionType::kRunning) || !status.progress) return "";
  const double wait = status.progress->data_wait_percent;
  if (status.progress->step <= 0) return "";
  std::string text = absl::StrFormat("GPU workers wait %.1f %% of their time for data", wait);
  const int64_t away = view.job.cpu_workers.wanted - view.job.cpu_workers.registered;
  if (wait < kWaitsMuch) return text + ": CPU workers keep up";
  if (away > 0) {
    absl::StrAppend(&text, "; ", away, " of ", view.job.cpu_workers.wanted, " CPU workers ",
                    away == 1 ? "is" : "are", " missing");
  }
  return text;
}

std::string RenderMembers(const std::vector<Member>& members, const Style& style) {
  std::map<api::RoleType, double> sums;
  for (const Member& member : members) {
    sums[member.type] += member.samples_per_second.value_or(0);
  }
  std::vector<Row> rows = {
      {"MEMBER", "NODE", "STATE", "CPU", "MEMORY", "SAMPLES/S", "SHARE", "WAIT", "RESTARTS"}};
  for (const Member& member : members) {
    std::optional<double> share;
    if (member.samples_per_second && sums[member.type] > 0) {
      share = 100 * *member.samples_per_second / sums[member.type];
    }
    rows.push_back({Plain(member.member()), member.node.empty() ? kUnknown : Plain(member.node),
                    Plain(member.state),
                    member.cores ? absl::StrFormat("%.2f", *member.cores) : kUnknown,
                    Memory(member), Rate(member.samples_per_second), Percent(share),
                    Percent(member.wait_percent),
                    member.restarts ? absl::StrCat(*member.restarts) : kUnknown});
  }
  return Table(std::move(rows), style.width, {"RESTARTS", "NODE", "SHARE", "MEMORY", "WAIT"});
}

using Place = std::tuple<size_t, int64_t>;  // of the role, and the replica

}  // namespace

std::vector<Member> MembersOf(const json& job, const std::vector<json>& pods) {
  std::vector<std::string> roles, types;
  for (const json& role : ListOf(FieldOf(job, "spec"), "roles")) {
    roles.push_back(TextOf(role, "name"));
    types.push_back(TextOf(role, "type"));
  }
  std::vector<std::pair<Place, Member>> placed;
  for (const json& pod : pods) {
    const json& metadata = FieldOf(pod, "metadata");
    const json& labels = FieldOf(metadata, "labels");
    Member member;
    member.role = TextOf(labels, api::kRoleLabel);
    const size_t rank = std::find(roles.begin(), roles.end(), member.role) - roles.begin();
    const std::string type = rank < types.size() ? types[rank] : "";
    for (const api::RoleType known : {api::RoleType::kHead, api::RoleType::kGpuWorker}) {
      if (type == api::NameOf(known)) member.type = known;
    }
    const std::string index = TextOf(labels, api::kReplicaIndexLabel);
    std::from_chars(index.data(), index.data() + index.size(), member.index);
    member.pod = TextOf(metadata, "name");
    member.node = TextOf(FieldOf(pod, "spec"), "nodeName");
    PodState state = StateOf(pod);
    member.state = std::move(state.word);
    member.restarts = state.restarts;
    const Place place(rank, member.index);
    placed.emplace_back(place, std::move(member));
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Member> members;
  for (auto& [place, member] : placed) members.push_back(std::move(member));
  return members;
}

std::string RenderTop(const TopView& view, base::WallTime now, const Style& style) {
  std::string text = RenderHead(view.job, now, style) + RenderHints(view.job, now, style);
  const auto paragraph = [&](const std::string& words) {
    if (words.empty()) return;
    for (const std::string& line : Wrap(words, style.width, 2)) absl::StrAppend(&text, line, "\n");
  };
  paragraph(Bottleneck(view));
  text += RenderProgress(view.job, now, style);
  if (!view.job.status.Is(api::ConditionType::kRunning)) text += RenderMessages(view.job, style);
  text += "\n";
  if (view.members.empty()) {
    text += "No pods\n";
  } else {
    text += RenderMembers(view.members, style);
  }
  paragraph(Cut(Plain(view.missing), kLongestMissing));
  return text;
}

}  // namespace hetero::cli
