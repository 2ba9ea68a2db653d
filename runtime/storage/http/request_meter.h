#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/storage/http/http_client.h"

namespace hetero::storage {

// What was asked of servers.
struct RequestFigures {
  int64_t requests = 0;   // that were sent, or could not be; redirects are followed uncounted
  int64_t retries = 0;    // of them, sent again because the one before had failed
  int64_t bytes = 0;      // of replies' bodies that arrived whole
  double dollars = 0;     // where prices are known
  int64_t throttled = 0;  // of the requests, answered with 429 or 503
  double seconds = 0;     // sum over the requests, from being sent to the end of their replies
};

// What a server's owner takes, in dollars: of GET and HEAD that it did not fail to answer, listings
// among them; what is written is not priced.
struct RequestPrices {
  double per_request = 0;
  double per_byte = 0;  // that is read
};

// Counts the requests to one store. Thread-safe.
class RequestMeter {
 public:
  explicit RequestMeter(const RequestPrices& prices = {}) : prices_(prices) {}

  // An exchange that has ended, after `time`. `again`: not the first of its call.
  void Count(const HttpRequest& request, const absl::StatusOr<HttpResponse>& response, bool again,
             base::Duration time) const;

  // Of all meters of this process, since it began.
  static RequestFigures OfProcess();

 private:
  const RequestPrices prices_;
};

}  // namespace hetero::storage
