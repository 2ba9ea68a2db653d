#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "base/clock.h"
#include "operator/kube/store.h"
#include "operator/page/row_json.h"
#include "operator/plan/observed.h"

namespace hetero::jobs_page {

// All jobs as the page is told of them: the whole, and what has changed since, as a JSON Merge
// Patch (RFC 7386). A job's row is made again only when its object has changed. Not thread-safe.
class JobsFeed {
 public:
  // Jobs beyond these, by namespace and name, are only counted.
  static constexpr size_t kMostJobs = 5000;

  using Ready = std::function<bool()>;
  // `jobs` and `clock` outlive it. `ready`: the store has all jobs.
  JobsFeed(const kube::Store<plan::ObservedJob>& jobs, base::Clock& clock, Ready ready,
           size_t most = kMostJobs);

  // As the last Change() left it. {"ready": true, "now": seconds since 1970, "hidden": number of
  // jobs beyond the limit, "jobs": {"namespace/name": {kParts[0]: ..., ...}}}.
  std::string Whole() const;
  // Looks at the store. Empty: nothing has changed.
  std::string Change();

 private:
  struct Told {
    std::string version;  // resourceVersion; empty: looked at each time
    RowParts parts;
  };
  // The patch of one job; empty: it is as it was told.
  std::string ChangeOf(const std::string& key, const plan::ObservedJob& job);

  const kube::Store<plan::ObservedJob>& jobs_;
  base::Clock& clock_;
  const Ready ready_;
  const size_t most_;
  std::map<std::string, Told> told_;  // by "namespace/name"
  bool told_ready_ = false;
  size_t told_hidden_ = 0;
};

}  // namespace hetero::jobs_page
