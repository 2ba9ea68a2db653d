#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/http_endpoint.h"
#include "base/metrics.h"
#include "runtime/head/server.h"
#include "runtime/process/live_page.h"

namespace hetero::process {

// The HTTP port on which people read a running job: / is the report so far as a page that loads
// itself again, /report.json the same for programs, /live the live page (live_page.h). Who asks
// under a name that may be of somebody else's page (base/http_host.h) gets 403. Thread-safe.
class ReportPage {
 public:
  // `address` is "host:port", port 0 for a free one, or "fd:3", a socket that listens and that this
  // process was started with; empty gives null: no port. Errors name the address. `server` outlives
  // the page.
  static absl::StatusOr<std::unique_ptr<ReportPage>> Open(const std::string& address,
                                                          const head::Server& server);
  int port() const { return endpoint_.port(); }
  // The job has ended: all who look see how. The port goes on.
  void Finish() { live_.Finish(); }

 private:
  explicit ReportPage(const head::Server& server);
  absl::Status Start(const std::string& address);

  metrics::Registry registry_;
  LivePage live_;
  metrics::HttpEndpoint endpoint_;
};

}  // namespace hetero::process
