#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/event_stream.h"
#include "base/http_endpoint.h"
#include "operator/kube/store.h"
#include "operator/page/jobs_feed.h"
#include "operator/plan/observed.h"

namespace hetero::jobs_page {

// The page of all jobs, at / of a port of its own: it is read, and nothing can be done by it. It
// has no login: whoever may reach the port, which is loopback's unless somebody says otherwise,
// sees names, figures and findings of all jobs that the operator serves. Events are made only while
// somebody looks, on the one thread of the stream.
class JobsPort {
 public:
  // All outlive it.
  JobsPort(const kube::Store<plan::ObservedJob>& jobs, base::Clock& clock, JobsFeed::Ready ready);

  // As HttpEndpoint::Start().
  absl::Status Start(const std::string& address, int port);
  int port() const { return http_.port(); }

 private:
  JobsFeed feed_;  // of the stream's thread
  metrics::EventStream stream_;
  metrics::HttpEndpoint http_;
};

}  // namespace hetero::jobs_page
