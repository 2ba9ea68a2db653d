#pragma once

#include <string>
#include <vector>

#include "hetero/v1/membership.pb.h"
#include "runtime/head/job_record.h"
#include "runtime/head/role_plan.h"

// Who takes part in a job at this moment: the record, read in the order of the plan.
namespace hetero::head {

// The CPU workers that trainers can ask for batches.
v1::Roster MakeRoster(const JobRecord& record, const RolePlan& plan);
// The current generation: its number, every rank, and the roster.
v1::Generation MakeGeneration(const JobRecord& record, const RolePlan& plan);

// Names of members that a head's first generation still waits for, because they have not joined or
// do not see what the others see: the first absent ones of each role that has fewer than it needs.
// CPU workers that are lost are waited for only before the job's first generation. Under a head
// that takes over an attempt in training, CPU workers that do not come back to it in time are not
// waited for either: they may have been taken away while no head was there.
std::vector<std::string> MissingMembers(const JobRecord& record, const RolePlan& plan);
// Whether this attempt has had a generation, under this head or one before it.
bool HadGeneration(const JobRecord& record);
// Whether CPU workers of the head before may still be on their way to this one, or have come and
// not said yet what they see of the data. A roster without them would have trainers cut them off in
// the middle of their batches.
bool AwaitsCpuWorkers(const JobRecord& record, const RolePlan& plan);
// "cpu-0 (/data does not exist), gpu-1 and 3 more": the first few, with what they said last.
std::string DescribeMissing(const JobRecord& record, std::vector<std::string> missing);

}  // namespace hetero::head
