#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/head/server.h"

namespace hetero::process {

// The head from listening to the written report. A requested `stop` (SIGTERM, Ctrl-C) ends the job
// in state Stopped; otherwise the verdict is left as termination message. `metrics_address` as of a
// CPU worker. `on_listening` hears the bound addresses. Returns the final status; errors: the
// address is taken or unusable.
absl::StatusOr<v1::JobStatus> RunHead(
    head::Server::Options options, const std::string& metrics_address, base::Clock& clock,
    std::stop_token stop, const std::function<void(const head::Server&)>& on_listening = {});

}  // namespace hetero::process
