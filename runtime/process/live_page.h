#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/event_stream.h"
#include "base/http_endpoint.h"
#include "runtime/head/live_builder.h"
#include "runtime/head/server.h"

namespace hetero::process {

// The live page of a job on an HTTP port: /live, which hears of the job by /live/events and of one
// member by /live/member.json. Outlives the port. Thread-safe.
class LivePage {
 public:
  // `server` outlives it.
  explicit LivePage(const head::Server& server);

  // Before the port starts.
  void Register(metrics::HttpEndpoint& endpoint);
  // Tells all who look the job's last state, and closes their connections.
  void Finish() { stream_.Finish(); }

 private:
  metrics::HttpResponse Member(const metrics::HttpRequest& request) const;
  std::string Change();

  const head::Server& server_;
  // Of the stream's thread alone.
  head::LiveBuilder builder_;
  nlohmann::json value_ = nlohmann::json::object();  // as those who look know it
  metrics::EventStream stream_;                      // last: its thread uses all others
};

}  // namespace hetero::process
