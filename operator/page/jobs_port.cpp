#include "operator/page/jobs_port.h"

#include <utility>

#include "operator/page/page.h"

namespace hetero::jobs_page {
namespace {

metrics::HttpResponse Page(const metrics::HttpRequest&) {
  return {.content_type = "text/html; charset=utf-8",
          .body = PageText(),
          .headers = {{"Content-Security-Policy", PagePolicy()},
                      {"Cache-Control", "no-cache"},
                      {"Referrer-Policy", "no-referrer"},
                      {"X-Content-Type-Options", "nosniff"}}};
}

}  // namespace

JobsPort::JobsPort(const kube::Store<plan::ObservedJob>& jobs, base::Clock& clock,
                   JobsFeed::Ready ready)
    : feed_(jobs, clock, std::move(ready)),
      stream_({.whole = [this] { return feed_.Whole(); },
               .change = [this] { return feed_.Change(); }}) {
  http_.SetGuard(metrics::RefuseUnknownHosts);
  http_.Handle("/", Page);
  http_.HandleStream("/events", stream_);
}

absl::Status JobsPort::Start(const std::string& address, int port) {
  return http_.Start(address, port);
}

}  // namespace hetero::jobs_page
