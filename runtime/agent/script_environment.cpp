#include "runtime/agent/script_environment.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/process_environment.h"
#include "runtime/process/foreign_environment.h"

namespace hetero::agent {
namespace {

namespace environment = api::environment;

std::string_view NameOf(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

}  // namespace

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  return variables;
}

RankPlace PlaceIn(const v1::Generation& generation, const v1::Identity& self) {
  RankPlace place{.world_size = generation.ranks_size(), .local_rank = self.local_rank()};
  std::map<std::pair<std::string, int32_t>, int32_t> first_ranks;  // of each pod
  place.local_world_size = 0;
  for (const v1::Rank& rank : generation.ranks()) {
    const auto [pod, is_new] = first_ranks.try_emplace({rank.role(), rank.index()}, rank.rank());
    pod->second = std::min(pod->second, rank.rank());
    if (rank.role() != self.role() || rank.index() != self.index()) continue;
    ++place.local_world_size;
    if (rank.local_rank() == self.local_rank()) place.rank = rank.rank();
  }
  place.group_world_size = static_cast<int32_t>(first_ranks.size());
  const int32_t own = first_ranks[{self.role(), self.index()}];
  place.group_rank = static_cast<int32_t>(std::count_if(
      first_ranks.begin(), first_ranks.end(), [own](const auto& pod) { return pod.second < own; }));
  return place;
}

std::vector<std::string> MakeEnvironment(const std::vector<std::string>& base,
                                         const ScriptEnvironment& script) {
  const RankPlace& place = script.place;
  std::map<std::string, std::string, std::less<>> set = {
      {"RANK", absl::StrCat(place.rank)},
      {"LOCAL_RANK", absl::StrCat(place.local_rank)},
      {"WORLD_SIZE", absl::StrCat(place.world_size)},
      {"LOCAL_WORLD_SIZE", absl::StrCat(place.local_world_size)},
      {"GROUP_RANK", absl::StrCat(place.group_rank)},
      {"GROUP_WORLD_SIZE", absl::StrCat(place.group_world_size)},
      {"ROLE_NAME", script.role},
      {"ROLE_RANK", absl::StrCat(place.rank)},
      {"ROLE_WORLD_SIZE", absl::StrCat(place.world_size)},
      {"MASTER_ADDR", script.master_host},
      {"MASTER_PORT", absl::StrCat(script.master_port)},
      {"TORCHELASTIC_RUN_ID", script.run},
      {"TORCHELASTIC_RESTART_COUNT", absl::StrCat(script.restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", absl::StrCat(script.max_restarts)},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
      {environment::kStreamSocket, script.socket}};
  if (!script.checkpoint_uri.empty()) {
    set.emplace(environment::kCheckpointUri, script.checkpoint_uri);
  }
  for (const std::string& variable : base) {  // what the launcher kept from this program
    if (NameOf(variable) != environment::kScriptPreload) continue;
    set["LD_PRELOAD"] = variable.substr(std::min(variable.size(), NameOf(variable).size() + 1));
  }
  std::set<std::string, std::less<>> inherited;
  std::vector<std::string> result;
  for (const std::string& variable : base) {
    const std::string_view name = NameOf(variable);
    if (name == environment::kScriptPreload) continue;
    if (process::IsForUsAlone(name) || set.contains(name) || name == environment::kCheckpointUri) {
      continue;
    }
    // Of two equal names getenv() takes the first, other languages the last.
    if (inherited.emplace(name).second) result.push_back(variable);
  }
  for (const auto& [name, value] : set) result.push_back(absl::StrCat(name, "=", value));
  // What a script prints is seen when it prints it, although it prints into a pipe.
  for (const auto& [name, value] :
       {std::pair<const char*, std::string>{"OMP_NUM_THREADS", absl::StrCat(script.threads)},
        {"PYTHONUNBUFFERED", "1"}}) {
    if (!inherited.contains(name)) result.push_back(absl::StrCat(name, "=", value));
  }
  return result;
}

}  // namespace hetero::agent
