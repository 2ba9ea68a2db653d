#include "runtime/storage/http/persistent_client.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"

namespace hetero::storage {
namespace {

using Verdict = Judgement::Verdict;

// Who waits longer than this is told why.
constexpr base::Duration kPatience = std::chrono::seconds(5);

// Of an exchange that gave no reply, or a request that could not be made.
Judgement JudgeError(const absl::Status& status) {
  const bool again = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  return {again ? Verdict::kAgain : Verdict::kFailed, status.code(), std::string(status.message())};
}

ConcurrencyLimit::Outcome OutcomeOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kDone:
      return ConcurrencyLimit::Outcome::kGood;
    case Verdict::kAgainSlower:
      return ConcurrencyLimit::Outcome::kSlowDown;
    case Verdict::kAgain:
    case Verdict::kFailed:
      return ConcurrencyLimit::Outcome::kOther;
  }
  return ConcurrencyLimit::Outcome::kOther;
}

// What even a slow line moves in a second is 1 MiB; one that is silent ends sooner by itself.
base::Duration TimeFor(const HttpRequest& request) {
  return std::chrono::seconds((request.into.size() + request.body.size()) >> 20);
}

// Zero where the server does not say, or gives a date.
base::Duration RetryAfter(const HttpResponse& response) {
  int seconds = 0;
  if (!absl::SimpleAtoi(response.Header("retry-after"), &seconds)) return base::Duration::zero();
  return std::chrono::seconds(std::clamp(seconds, 0, 3600));
}

}  // namespace

Judgement JudgeStatus(const HttpResponse& response) {
  const int status = response.status;
  std::string reason = absl::StrCat("HTTP ", status);
  if (status >= 200 && status < 300) return {};
  switch (status) {
    case 401:
    case 403:
      return {Verdict::kFailed, absl::StatusCode::kPermissionDenied, std::move(reason)};
    case 404:
    case 410:
      return {Verdict::kFailed, absl::StatusCode::kNotFound, std::move(reason)};
    case 412:
      return {Verdict::kFailed, absl::StatusCode::kFailedPrecondition, std::move(reason)};
    case 416:
      return {Verdict::kFailed, absl::StatusCode::kOutOfRange, std::move(reason)};
    case 429:
    case 503:
      return {Verdict::kAgainSlower, absl::StatusCode::kUnavailable, std::move(reason)};
    case 408:
      return {Verdict::kAgain, absl::StatusCode::kUnavailable, std::move(reason)};
    case 501:
    case 505:
    case 507:  // a store that is full
    case 508:
    case 510:
    case 511:
      return {Verdict::kFailed, absl::StatusCode::kInternal, std::move(reason)};
    default:
      if (status >= 500 && status < 600) {  // above 511 those of balancers and CDNs
        return {Verdict::kAgain, absl::StatusCode::kUnavailable, std::move(reason)};
      }
      return {Verdict::kFailed, absl::StatusCode::kInternal, std::move(reason)};
  }
}

absl::StatusOr<PersistentClient::Answer> PersistentClient::Send(const HttpCall& call) {
  const base::Instant begin = clock_.Now();
  base::Instant end = begin + options_.total;
  std::optional<base::Backoff> backoff;
  Judgement judgement;
  int attempts = 0;
  bool told = false;
  bool sent = false;
  while (true) {
    base::Duration wait{};
    if (absl::StatusOr<HttpRequest> request = call.prepare(); !request.ok()) {
      ++attempts;
      judgement = JudgeError(request.status());
    } else {
      const base::Duration extra = TimeFor(*request);
      end = begin + options_.total + extra;
      ConcurrencyLimit::Slot slot = limit_.Take(end - clock_.Now());
      if (!slot.ok()) {
        if (attempts == 0) judgement.reason = "too many other requests are underway";
        judgement.code = absl::StatusCode::kDeadlineExceeded;
        break;
      }
      ++attempts;
      request->deadlines = deadlines_;
      request->deadlines.total = std::min(deadlines_.total + extra, end - clock_.Now());
      const base::Instant asked = clock_.Now();
      absl::StatusOr<HttpResponse> response = http_.Send(*request);
      if (meter_ != nullptr)
        meter_->Count(*request, response, /*again=*/sent, clock_.Now() - asked);
      sent = true;
      judgement = response.ok() ? call.judge(*response) : JudgeError(response.status());
      slot.End(OutcomeOf(judgement.verdict));
      if (judgement.verdict == Verdict::kDone) return Answer{*std::move(response), attempts};
      if (response.ok()) wait = RetryAfter(*response);
    }
    if (judgement.verdict == Verdict::kFailed || attempts >= options_.most_attempts) break;
    if (!backoff.has_value()) backoff.emplace(options_.backoff);
    // Some servers say two minutes to any request that comes at a bad moment.
    if (clock_.Now() + wait >= end) wait = (end - clock_.Now()) / 4;
    wait = std::max(wait, backoff->Next());
    if (clock_.Now() + wait >= end) break;
    if (!told && clock_.Now() - begin >= kPatience) {
      told = true;
      log::Warning("a store does not do what it is asked; it is asked again",
                   {{"request", call.what},
                    {"reason", judgement.reason},
                    {"attempts", attempts},
                    {"forSeconds", base::ToSeconds(end - clock_.Now())}});
    }
    clock_.SleepFor(wait);
  }
  std::string message = absl::StrCat(call.what, ": ", judgement.reason);
  // Why a request could not be made says itself how often that was tried.
  if (sent || attempts == 0) {
    absl::StrAppendFormat(&message, "; tried %d time%s in %.1f s", attempts,
                          attempts == 1 ? "" : "s", base::ToSeconds(clock_.Now() - begin));
  }
  return absl::Status(judgement.code, message);
}

}  // namespace hetero::storage
