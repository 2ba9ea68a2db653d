#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "runtime/storage/http/concurrency_limit.h"
#include "runtime/storage/http/http_client.h"
#include "runtime/storage/http/request_meter.h"

namespace hetero::storage {

// What a reply means for the call.
struct Judgement {
  enum class Verdict {
    kDone,
    kAgain,        // the same may well succeed a moment later
    kAgainSlower,  // and the server asks for fewer requests at once
    kFailed,       // it will not
  };
  Verdict verdict = Verdict::kDone;
  absl::StatusCode code = absl::StatusCode::kOk;  // of the error, should it come to one
  std::string
      reason;  // "HTTP 503 SlowDown: reduce your request rate (request id 4442587FB7D0A2F9)"
};

// By the status alone: 2xx is done, 408, 429 and 5xx but 501, 505, 507, 508, 510 and 511 come
// again, 404 is kNotFound, 412 kFailedPrecondition, 416 kOutOfRange, 401 and 403 kPermissionDenied.
Judgement JudgeStatus(const HttpResponse& response);

struct RetryOptions {
  base::Backoff::Options backoff = {
      .initial = std::chrono::milliseconds(100), .max = std::chrono::seconds(10), .jitter = 0.5};
  int most_attempts = 10;  // >= 1
  // Of all attempts and what lies between. This and the one of each exchange are a second longer
  // for each MiB that is asked for or sent.
  base::Duration total = std::chrono::seconds(120);
};

// Something to be had of a server. `prepare` and `judge` are called on the caller's thread, for
// each attempt.
struct HttpCall {
  std::string what;  // "cannot read s3://bucket/key, bytes 0 to 99"
  // A request that may be sent more than once. kUnavailable is tried again as a lost reply is.
  std::function<absl::StatusOr<HttpRequest>()> prepare;
  std::function<Judgement(const HttpResponse&)> judge = JudgeStatus;
};

// Sends until the server has done it, cannot do it, or attempts or time are spent. Exchanges that
// fail (no connection, reset, ended early, silence) are tried again, a server that says how long to
// wait (Retry-After) is waited for. Thread-safe.
class PersistentClient {
 public:
  // All outlive it. Sets the deadlines of requests. Those that no `meter` counts are in no figure.
  PersistentClient(HttpClient& http, base::Clock& clock, ConcurrencyLimit& limit,
                   const RetryOptions& options, const HttpDeadlines& deadlines,
                   const RequestMeter* meter = nullptr)
      : http_(http),
        clock_(clock),
        limit_(limit),
        options_(options),
        deadlines_(deadlines),
        meter_(meter) {}

  struct Answer {
    HttpResponse response;
    int attempts = 1;
  };
  // Errors: "<what>: <reason>; tried 3 times in 4.2 s".
  absl::StatusOr<Answer> Send(const HttpCall& call);

 private:
  HttpClient& http_;
  base::Clock& clock_;
  ConcurrencyLimit& limit_;
  const RetryOptions options_;
  const HttpDeadlines deadlines_;
  const RequestMeter* const meter_;
};

}  // namespace hetero::storage
