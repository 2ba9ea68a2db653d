#pragma once

#include <string>

#include "hetero/v1/membership.pb.h"
#include "runtime/head/job_record.h"

// What members tell with their heartbeats, entered in the record.
namespace hetero::head {

// `member` is one of the record's. Of a CPU worker its counters, what it uses and what it says of
// its operators are taken, whatever else it tells. Lists may repeat what was sent on an earlier
// stream: what is known already is left out.
void RecordHeartbeat(const v1::Heartbeat& heartbeat, MemberRecord& member, Moment now,
                     JobRecord& record);

// Why the record holds more bad samples than the manifest allows; empty when it does not.
std::string TooManyBadSamples(const JobRecord& record);

}  // namespace hetero::head
