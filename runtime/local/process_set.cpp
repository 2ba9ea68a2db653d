#include "runtime/local/process_set.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/status_macros.h"

namespace hetero::local {
namespace {

std::string ListFile(const ProcessPlanOptions& plan) {
  return absl::StrCat(plan.output_folder, "/processes.json");
}

}  // namespace

absl::Status ProcessSet::StartAll() {
  for (ProcessPlan& process : PlanProcesses(job_, plan_)) {
    members_.push_back({.plan = std::move(process)});
    HETERO_RETURN_IF_ERROR(Start(members_.back()));
  }
  WriteList();
  return absl::OkStatus();
}

absl::Status ProcessSet::Start(Member& member) {
  const base::Duration now =
      std::chrono::duration_cast<base::Duration>(clock_.WallNow().time_since_epoch());
  // Of two processes the newer has the larger one, also when the clock has gone back.
  last_incarnation_ = std::max(last_incarnation_ + 1, now.count());
  member.incarnation = last_incarnation_;
  // Who has set the clock has not made the job any older.
  SetCreation((now - (clock_.Now() - began_)).count(), member.plan);
  const bool prints = member.plan.type != api::RoleType::kCpuWorker;
  HETERO_ASSIGN_OR_RETURN(
      member.child, Child::Start(member.plan, attempt_, member.incarnation, LogOf(member.plan.name),
                                 prints ? output_fd_ : -1));
  member.ended = false;
  member.exit.reset();
  return absl::OkStatus();
}

void ProcessSet::RestartAll(
    const std::function<void(const Member&, const absl::Status&)>& on_error) {
  ++attempt_;
  KillAll();
  for (Member& member : members_) member.child = Child();  // waits for its end
  for (Member& member : members_) {
    const absl::Status started = Start(member);
    member.ended = !started.ok();
    if (member.ended) on_error(member, started);
  }
}

bool ProcessSet::Resize(const api::Role& role, int32_t needed, Console& console) {
  bool changed = false;
  std::vector<bool> there(static_cast<size_t>(std::max(needed, 0)));
  for (Member& member : members_) {
    if (member.plan.role != role.name) continue;
    const auto index = static_cast<size_t>(member.plan.index);
    // A name is free again when its process has ended; one that failed for good is not tried again.
    if (index < there.size()) there[index] = !(member.ended && member.leaving);
    if (index < there.size() || member.ended || member.leaving) continue;
    member.leaving = changed = true;
    member.child.Signal(SIGTERM);
  }
  for (size_t i = 0; i < there.size(); ++i) {
    if (there[i]) continue;
    const auto index = static_cast<int32_t>(i);
    std::erase_if(members_, [&](const Member& m) {
      return m.plan.role == role.name && m.plan.index == index;
    });
    members_.push_back({.plan = PlanCpuWorker(job_, plan_, role, index)});
    if (const absl::Status started = Start(members_.back()); !started.ok()) {
      console.Line(absl::StrCat(members_.back().plan.name, ": ", started.message()));
      members_.pop_back();
      continue;
    }
    changed = true;
  }
  return changed;
}

void ProcessSet::KillAll() {
  for (Member& member : members_) {
    if (!member.ended) member.child.Signal(SIGKILL);
  }
}

bool ProcessSet::running() const {
  return std::any_of(members_.begin(), members_.end(), [](const Member& m) { return !m.ended; });
}

bool ProcessSet::ranks_run() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& m) { return m.rank() && !m.ended; });
}

std::string ProcessSet::LogOf(const std::string& name) const {
  return absl::StrCat(plan_.output_folder, "/logs/", name, ".log");
}

void ProcessSet::FollowScripts() {
  if (!job_.spec.training.script || plan_.input_only) return;
  std::vector<std::string> scripts;
  for (int32_t rank = 0; rank < job_.spec.world_size(); ++rank) {
    std::ifstream file(absl::StrCat(plan_.socket_folder, "/script-", rank, ".json"));
    std::string line;
    if (std::getline(file, line)) scripts.push_back(std::move(line));
  }
  if (scripts == scripts_) return;
  scripts_ = std::move(scripts);
  WriteList();
}

void ProcessSet::WriteList() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Member& member : members_) {
    if (member.ended) continue;
    list.push_back({{"name", member.plan.name},
                    {"role", member.plan.role},
                    {"index", member.plan.index},
                    {"pid", member.child.pid()}});
  }
  for (const std::string& line : scripts_) {
    const nlohmann::ordered_json script =
        nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    // An agent that was killed has left the line, but no script.
    const bool runs = std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
      return !member.ended && script.is_object() && member.plan.role == script.value("role", "") &&
             member.plan.index == script.value("index", -1);
    });
    if (runs) list.push_back(script);
  }
  base::WriteFileAtomically(ListFile(plan_), list.dump(2) + "\n").IgnoreError();
}

void ProcessSet::RemoveList() const {
  std::error_code ignored;
  std::filesystem::remove(ListFile(plan_), ignored);
}

}  // namespace hetero::local
