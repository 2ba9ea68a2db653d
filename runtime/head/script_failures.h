#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "hetero/v1/membership.pb.h"
#include "runtime/head/job_record.h"

namespace hetero::head {

// Scripts that ended as they should not have, of which each ends its generation: all scripts start
// again, which costs one of runPolicy.maxRestarts however many of them failed. Writes
// JobRecord::script_restarts, script_failures and faults. Not thread-safe.
class ScriptFailures {
 public:
  static constexpr int kAlike = 3;  // generations with the same last line at the same step

  // What failed first is told within `grace` of the first word: peers fail because of it.
  ScriptFailures(base::Duration grace, JobRecord& record) : grace_(grace), record_(record) {}

  struct End {  // of the job
    std::string member;
    std::string message;
  };
  // `member` tells of a failure in the record's generation; others, and repetitions, are passed
  // over. The job's end where it would only come again.
  std::optional<End> Take(const std::string& member, const v1::ScriptFailure& failure,
                          base::Instant now);
  // Counts the record's generation once, when its grace is over, all ranks have told of a failure,
  // or at once with `closing`; not when the process of a rank that told of none is gone. The job's
  // end when there were too many.
  std::optional<End> Judge(bool closing, Moment now);
  // All scripts are at work again.
  void Recover(Moment now);

 private:
  struct Told {
    v1::ScriptFailure failure;
    std::string member;
  };
  const Told& First() const;
  // Whether it has failed alike in this generation and enough of those before.
  bool IsAlike(const v1::ScriptFailure& failure) const;
  // Whoever lost the connection to it had to fail; what its end costs is counted with that.
  bool AnotherRankIsGone() const;
  // So that it is not taken again; with the lines, for what may fail alike later.
  void Remember(bool with_lines);

  const base::Duration grace_;
  JobRecord& record_;
  int64_t generation_ = 0;        // of those told
  std::map<int32_t, Told> told_;  // by rank
  std::optional<int32_t> first_rank_;
  std::vector<int64_t> processes_;  // of each rank, by their incarnation, when the first told
  base::Instant since_{};
  std::optional<size_t> open_fault_;  // index into JobRecord::faults
};

}  // namespace hetero::head
