#pragma once

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "runtime/process/identity.h"

namespace hetero::process {

struct CpuWorkerOptions {
  Identity identity;
  std::string listen_address;   // of the feed port: "0.0.0.0:7080", "unix:/path/cpu-0.sock"
  std::string metrics_address;  // "host:port" for /metrics, /healthz, /readyz; empty: none
  int threads = 0;              // 0: one per usable core
};

// A CPU worker from joining to leaving: serves tickets until the head says stop, a newer
// incarnation takes its place, or `stop` is requested (all OK). Errors: the port is taken, the
// dataset cannot be opened, the head refuses this member.
absl::Status RunCpuWorker(const CpuWorkerOptions& options, base::Clock& clock,
                          std::stop_token stop);

}  // namespace hetero::process
