#include "operator/page/jobs_feed.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hetero::jobs_page {
namespace {

// The parts that are not as before; one that is gone is null.
std::string Changed(const RowParts& before, const RowParts& after) {
  std::vector<std::string> members;
  for (size_t i = 0; i < kParts.size(); ++i) {
    if (before[i] == after[i]) continue;
    members.push_back(absl::StrCat("\"", kParts[i], "\":", after[i].empty() ? "null" : after[i]));
  }
  return members.empty() ? "" : absl::StrCat("{", absl::StrJoin(members, ","), "}");
}

std::string Member(const std::string& key, const std::string& value) {
  return absl::StrCat(Quoted(key), ":", value);
}

}  // namespace

JobsFeed::JobsFeed(const kube::Store<plan::ObservedJob>& jobs, base::Clock& clock, Ready ready,
                   size_t most)
    : jobs_(jobs), clock_(clock), ready_(std::move(ready)), most_(most) {}

std::string JobsFeed::Whole() const {
  std::vector<std::string> jobs;
  jobs.reserve(told_.size());
  for (const auto& [key, told] : told_)
    jobs.push_back(Member(key, Changed(RowParts(), told.parts)));
  const auto now =
      std::chrono::floor<std::chrono::seconds>(clock_.WallNow().time_since_epoch()).count();
  return absl::StrCat("{\"ready\":", told_ready_ ? "true" : "false", ",\"now\":", now,
                      ",\"hidden\":", told_hidden_, ",\"jobs\":{", absl::StrJoin(jobs, ","), "}}");
}

std::string JobsFeed::ChangeOf(const std::string& key, const plan::ObservedJob& job) {
  const auto [found, is_new] = told_.try_emplace(key);
  Told& told = found->second;
  if (!is_new && !job.resource_version.empty() && told.version == job.resource_version) return "";
  told.version = job.resource_version;
  RowParts parts = PartsOf(RowOf(job));
  std::string change = Changed(std::exchange(told.parts, parts), parts);
  return change;
}

std::string JobsFeed::Change() {
  const bool ready = ready_();
  std::vector<kube::ObjectKey> keys = jobs_.Keys();
  const size_t hidden = keys.size() - std::min(keys.size(), most_);
  keys.resize(keys.size() - hidden);
  std::set<std::string> here;
  std::vector<std::string> jobs;
  for (const kube::ObjectKey& object : keys) {
    const auto job = jobs_.Get(object);
    if (job == nullptr) continue;
    const std::string key = object.ToString();
    here.insert(key);
    const std::string change = ChangeOf(key, *job);
    if (!change.empty()) jobs.push_back(Member(key, change));
  }
  for (auto told = told_.begin(); told != told_.end();) {
    const bool gone = !here.contains(told->first);
    if (gone) jobs.push_back(Member(told->first, "null"));
    told = gone ? told_.erase(told) : std::next(told);
  }
  std::vector<std::string> members;
  if (std::exchange(told_ready_, ready) != ready) {
    members.push_back(absl::StrCat("\"ready\":", ready ? "true" : "false"));
  }
  if (std::exchange(told_hidden_, hidden) != hidden) {
    members.push_back(absl::StrCat("\"hidden\":", hidden));
  }
  if (!jobs.empty()) {
    members.push_back(absl::StrCat("\"jobs\":{", absl::StrJoin(jobs, ","), "}"));
  }
  return members.empty() ? "" : absl::StrCat("{", absl::StrJoin(members, ","), "}");
}

}  // namespace hetero::jobs_page
