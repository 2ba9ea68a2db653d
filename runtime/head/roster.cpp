#include "runtime/head/roster.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hetero::head {
namespace {

constexpr size_t kNamedMembers = 5;

// The notice is for this process, and not only a word to be careful.
bool IsAboutToGo(const JobRecord& record, const v1::Identity& identity) {
  const auto found = record.notices.find({identity.role(), identity.index(), 0});
  if (found == record.notices.end() || found->second.may_stay()) return false;
  const int64_t incarnation = found->second.incarnation();
  return incarnation == 0 || incarnation == identity.incarnation();
}

}  // namespace

v1::Roster MakeRoster(const JobRecord& record, const RolePlan& plan) {
  v1::Roster roster;
  for (const RolePlan::Role& role : plan.roles()) {
    if (role.trainer) continue;
    for (int32_t index = 0; index < role.limit; ++index) {
      const auto member = record.members.find({role.name, index, 0});
      if (member == record.members.end() || !member->second.takes_part()) continue;
      v1::CpuWorker* worker = roster.add_cpu_workers();
      worker->set_role(role.name);
      worker->set_index(index);
      worker->set_address(member->second.hello.address());
      worker->set_incarnation(member->second.hello.identity().incarnation());
      worker->set_leaving(IsAboutToGo(record, member->second.hello.identity()));
    }
  }
  return roster;
}

v1::Generation MakeGeneration(const JobRecord& record, const RolePlan& plan) {
  v1::Generation generation;
  generation.set_number(record.generation);
  generation.set_reached_step(record.reached_step);
  *generation.mutable_cpu_workers() = MakeRoster(record, plan).cpu_workers();
  for (size_t rank = 0; rank < record.ranks.size(); ++rank) {
    const MemberKey& key = record.ranks[rank];
    v1::Rank* entry = generation.add_ranks();
    entry->set_rank(static_cast<int32_t>(rank));
    entry->set_role(key.role);
    entry->set_index(key.index);
    entry->set_local_rank(key.local_rank);
    const auto member = record.members.find(key);
    if (member != record.members.end()) entry->set_address(member->second.hello.address());
  }
  return generation;
}

// Each attempt's processes are new ones, so that only they can have heard of one.
bool HadGeneration(const JobRecord& record) {
  return record.generation > 0 ||
         std::any_of(record.members.begin(), record.members.end(),
                     [](const auto& m) { return m.second.hello.generation() > 0; });
}

std::vector<std::string> MissingMembers(const JobRecord& record, const RolePlan& plan) {
  std::vector<std::string> missing;
  // Only the job's first generation waits for CPU workers: later ones do without those that are
  // lost, under whichever head.
  const bool first = record.past.generation == 0;
  const bool does_without = record.all_had_time && HadGeneration(record);
  for (const RolePlan::Role& role : plan.roles()) {
    if (!role.trainer && does_without) continue;
    int32_t registered = 0;
    std::vector<std::string> absent;
    for (int32_t index = 0; index < role.limit; ++index) {
      for (int32_t local = 0; local < role.local_ranks; ++local) {
        const auto member = record.members.find({role.name, index, local});
        const bool known = member != record.members.end();
        const bool spared = known && !first && !role.trainer && member->second.lost;
        if (spared || (known && member->second.takes_part())) {
          ++registered;
        } else {
          absent.push_back(MemberName(role, index, local));
        }
      }
    }
    const int32_t lacking = role.required * role.local_ranks - registered;
    for (int32_t i = 0; i < lacking; ++i) missing.push_back(absent[static_cast<size_t>(i)]);
  }
  return missing;
}

bool AwaitsCpuWorkers(const JobRecord& record, const RolePlan& plan) {
  if (record.all_had_time) return false;
  const bool comes =
      std::any_of(record.members.begin(), record.members.end(), [](const auto& entry) {
        const MemberRecord& member = entry.second;
        return !member.trainer() && member.registered() && !member.fits && member.unfit.empty() &&
               member.hello.generation() > 0;
      });
  if (comes) return true;
  const int32_t attempt = record.attempts.back().number;
  const auto lives = [attempt](const v1::MemberHistory& member) {
    return !member.left() && !member.ended() && member.attempt() == attempt;
  };
  const auto is_worker = [&plan](const std::string& role) {
    return std::any_of(
        plan.roles().begin(), plan.roles().end(),
        [&role](const RolePlan::Role& known) { return !known.trainer && known.name == role; });
  };
  return std::any_of(record.past.members.begin(), record.past.members.end(),
                     [&](const auto& m) { return lives(m.second) && is_worker(m.first.role); });
}

std::string DescribeMissing(const JobRecord& record, std::vector<std::string> missing) {
  const size_t more = missing.size() > kNamedMembers ? missing.size() - kNamedMembers : 0;
  missing.resize(missing.size() - more);
  for (std::string& name : missing) {
    if (const auto refused = record.refusals.find(name); refused != record.refusals.end()) {
      absl::StrAppend(&name, " (refused: ", refused->second, ")");
      continue;
    }
    for (const auto& [key, member] : record.members) {
      if (member.name != name) continue;
      if (member.finished && !member.finished->message().empty()) {
        absl::StrAppend(&name, " (", member.finished->message(), ")");
      } else if (!member.unfit.empty()) {
        absl::StrAppend(&name, " (", member.unfit, ")");
      } else if (member.registered() && !member.ready) {
        absl::StrAppend(&name, " (joined; its dataset is not open yet)");
      }
      break;
    }
  }
  std::string names = absl::StrJoin(missing, ", ");
  if (more > 0) absl::StrAppend(&names, " and ", more, " more");
  return names;
}

}  // namespace hetero::head
