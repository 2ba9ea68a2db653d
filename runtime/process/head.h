#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/head/server.h"

namespace hetero::process {

struct HeadOptions {
  head::Server::Options server;
  std::string metrics_address;  // as of a CPU worker
  std::string page_address;     // of the pages of the job (ReportPage::Open()); empty: none
  // A stop ends this process alone, because somebody starts another head for the job.
  bool leave_on_stop = false;
};

// What a head takes over from the one before it: the job's run, this head's attempt, when that was
// asked for, and HETERO_HISTORY. What is missing or malformed is as if unset: without an
// incarnation the attempt began when the job was `created`.
head::Server::HistoryOptions HeadHistoryFromEnvironment(base::WallTime created);

// The head from listening to the written report. A requested `stop` (SIGTERM, Ctrl-C) ends the job
// in state Stopped, or with `leave_on_stop` leaves it as it is; otherwise what the job came to is
// left as termination message. `on_listening` hears the bound addresses. Returns the last status;
// errors: an address is taken or unusable.
absl::StatusOr<v1::JobStatus> RunHead(
    HeadOptions options, base::Clock& clock, std::stop_token stop,
    const std::function<void(const head::Server&)>& on_listening = {});

}  // namespace hetero::process
