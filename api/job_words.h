#pragma once

#include <string>
#include <string_view>

#include "api/job_status.h"

// What a line about a job says: `kubectl hetero list` and the operator's page of all jobs use the
// same words. Texts are as whoever wrote the status wrote them. Pure.
namespace hetero::api {

// The most telling condition that is True ("Running"), "Waiting" before there is one.
std::string StateWordOf(const JobStatus& status);

// Whether step and rates tell more than words: it makes steps, or has made some and is in order.
bool ShowsFigures(const JobStatus& status);

// What is to be said in the place of all else: "being deleted", "managed by example.com/other",
// "not seen by an operator yet"; usually empty. `manager` empty, or our own: the job is ours.
std::string RemarkOn(const JobStatus& status, bool deleting, std::string_view manager);

// The condition whose message tells why the job is where it is; null: none has anything to say.
const Condition* TellingOf(const JobStatus& status);
// "Unschedulable: vit-cpu-1: 0/3 nodes": its reason and the first line of its message; empty: there
// is none.
std::string TellingLineOf(const JobStatus& status);

}  // namespace hetero::api
