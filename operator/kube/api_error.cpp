#include "operator/kube/api_error.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/cord.h"
#include "base/json_access.h"
#include "operator/kube/client.h"

namespace hetero::kube {
namespace {

using base::FieldOf;
using base::SmallIntegerOf;
using base::TextOf;
using nlohmann::json;

constexpr char kRetryAfterUrl[] = "hetero/kube/retry-after-seconds";
constexpr char kQuotaUrl[] = "hetero/kube/quota-exceeded";
constexpr char kNotServedUrl[] = "hetero/kube/not-served";
// What is not a Status object (a proxy's page) is quoted up to here.
constexpr size_t kQuotedBytes = 300;

absl::StatusCode CodeOf(int code, std::string_view reason) {
  switch (code) {
    case 400:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      return reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists
                                       : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    default:
      return code >= 500 ? absl::StatusCode::kUnavailable : absl::StatusCode::kFailedPrecondition;
  }
}

std::optional<int> ParseSeconds(std::string_view text) {
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return seconds;
}

absl::Status MakeError(std::string_view call, int code, std::string_view reason,
                       std::string_view message, std::optional<int> retry_after) {
  std::string text(call);
  text.append(": ").append(std::to_string(code));
  if (!reason.empty()) text.append(" ").append(reason);
  if (!message.empty()) text.append(": ").append(message);
  absl::Status status(CodeOf(code, reason), text);
  if (retry_after.has_value()) {
    status.SetPayload(kRetryAfterUrl, absl::Cord(std::to_string(*retry_after)));
  }
  if (code == 403 && message.find("exceeded quota") != std::string_view::npos) {
    status.SetPayload(kQuotaUrl, absl::Cord("true"));
  }
  return status;
}

std::string Printable(std::string_view text) {
  std::string quoted(text.substr(0, kQuotedBytes));
  std::replace_if(
      quoted.begin(), quoted.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, ' ');
  return quoted;
}

}  // namespace

absl::Status ErrorOfResponse(std::string_view call, const Response& response) {
  std::optional<int> retry_after;
  if (const auto header = response.headers.find("retry-after"); header != response.headers.end()) {
    retry_after = ParseSeconds(header->second);
  }
  const json body = json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  if (TextOf(body, "kind") != "Status") {
    absl::Status status =
        MakeError(call, response.status, "", Printable(response.body), retry_after);
    // "404 page not found": what is said about an object is a Status.
    if (response.status == 404) status.SetPayload(kNotServedUrl, absl::Cord("true"));
    return status;
  }
  return MakeError(call, response.status, TextOf(body, "reason"), TextOf(body, "message"),
                   retry_after);
}

absl::Status ErrorOfStatusObject(std::string_view call, const json& object) {
  int code = SmallIntegerOf(object, "code");
  if (code < 400) code = 500;
  std::optional<int> retry_after;
  const int seconds = SmallIntegerOf(FieldOf(object, "details"), "retryAfterSeconds");
  if (seconds > 0) retry_after = seconds;
  return MakeError(call, code, TextOf(object, "reason"), TextOf(object, "message"), retry_after);
}

bool IsQuotaExceeded(const absl::Status& status) {
  return status.GetPayload(kQuotaUrl).has_value();
}

bool IsNotServed(const absl::Status& status) {
  return status.GetPayload(kNotServedUrl).has_value();
}

std::optional<base::Duration> RetryAfter(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryAfterUrl);
  if (!payload.has_value()) return std::nullopt;
  const auto seconds = ParseSeconds(std::string(*payload));
  if (!seconds.has_value()) return std::nullopt;
  return std::chrono::seconds(*seconds);
}

}  // namespace hetero::kube
