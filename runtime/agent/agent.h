#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "runtime/agent/rank_agent.h"
#include "runtime/agent/script_process.h"

namespace hetero::agent {

// All ranks of one pod, from joining the job to leaving it, each on a thread. `options.session` is
// that of the first; `scripts` has one entry for each rank, or is empty: somebody else starts the
// only one. A rank that fails takes the others with it. Returns the first failure, else how the
// last rank ended (RunRankAgent()).
absl::Status RunAgent(const RankAgentOptions& options,
                      const std::vector<std::unique_ptr<ScriptProcess>>& scripts,
                      base::Clock& clock, std::stop_token stop);

// A folder of this process for its sockets below TMPDIR, for whoever names none; it is removed with
// the object. kUnavailable with the path when there is no room for one.
class OwnSocketFolder {
 public:
  static absl::StatusOr<OwnSocketFolder> Create();
  OwnSocketFolder(OwnSocketFolder&& other) noexcept;
  OwnSocketFolder& operator=(OwnSocketFolder&&) = delete;
  ~OwnSocketFolder();
  const std::string& path() const { return path_; }

 private:
  explicit OwnSocketFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace hetero::agent
