#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/http_endpoint.h"
#include "base/metrics.h"
#include "runtime/insight/report.h"

namespace hetero::process {

// The HTTP port on which people read a running job: / is the report so far as a page that loads
// itself again, /report.json the same for programs. Thread-safe.
class ReportPage {
 public:
  // `report` is called for each request and outlives the page's use. `address` is "host:port", port
  // 0 for a free one; empty gives null: no port. Errors name the address.
  static absl::StatusOr<std::unique_ptr<ReportPage>> Open(const std::string& address,
                                                          std::function<insight::Report()> report);
  int port() const { return endpoint_.port(); }

 private:
  explicit ReportPage(std::function<insight::Report()> report);

  const std::function<insight::Report()> report_;
  metrics::Registry registry_;
  metrics::HttpEndpoint endpoint_;
};

}  // namespace hetero::process
