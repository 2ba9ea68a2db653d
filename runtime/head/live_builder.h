#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "hetero/v1/status.pb.h"
#include "runtime/head/job_record.h"
#include "runtime/insight/live/snapshot.h"

namespace hetero::head {

// What the live page shows of a job, from its record. Rates of members are differences of what they
// told, so it remembers; everything else is a function of the record. Quick enough to run once a
// second while the record is locked. Not thread-safe.
class LiveBuilder {
 public:
  static constexpr double kHeatSpan = 2;       // seconds of a column
  static constexpr int64_t kHeatColumns = 60;  // the newest
  static constexpr base::Duration kRateSpan = std::chrono::seconds(5);

  // `status` is the head's of the same moment: its state, which stays Running until the report is
  // written, message and findings are those that others see, too.
  live::Snapshot Build(const JobRecord& record, const v1::JobStatus& status, Moment now);

 private:
  struct Told {  // when, and how many samples a member had made by then
    base::Instant at;
    int64_t samples = 0;
  };
  struct Known {
    int32_t slot = 0;
    std::deque<Told> told;
  };

  void AddMembers(const JobRecord& record, Moment now, live::Snapshot& snapshot);
  std::optional<double> RateOf(const MemberRecord& member, Moment now, Known& known);
  void AddHeat(const JobRecord& record, Moment now, live::Snapshot& snapshot);

  std::map<MemberKey, Known> known_;
  live::Heat heat_;
};

// The one that the page shows in detail: its columns after `after` seconds since the job was
// created, of the last two minutes or, with `whole`, of the whole job. Nothing: the job has none of
// that name.
std::optional<live::MemberDetail> BuildMemberDetail(const JobRecord& record,
                                                    const std::string& name, bool whole,
                                                    double after, Moment now);

}  // namespace hetero::head
