#include "runtime/storage/s3_connection.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "runtime/storage/aws/signing_v4.h"

namespace hetero::storage {
namespace {

using Verdict = Judgement::Verdict;

// What is worth another attempt although the status does not say so.
bool IsPassing(const std::string& code) {
  return code == "RequestTimeout" || code == "InternalError" || code == "OperationAborted" ||
         code == "ConditionalRequestConflict";
}

// Keys that are unknown were taken back: those who hand them out have others by then.
bool SaysExpired(const HttpResponse& response) {
  if (response.status != 400 && response.status != 401 && response.status != 403) return false;
  const std::string code = ReadS3Error(response.body).code;
  return absl::StartsWith(code, "ExpiredToken") || code == "InvalidAccessKeyId";
}

}  // namespace

Judgement JudgeS3(const HttpResponse& response) {
  Judgement judgement = JudgeStatus(response);
  // Long replies are lists, which are read once.
  const bool may_be_error = judgement.verdict != Verdict::kDone ||
                            absl::StrContains(response.body.substr(0, 200), "<Error>");
  const S3Error error = may_be_error ? ReadS3Error(response.body) : S3Error();
  if (judgement.verdict == Verdict::kDone) {
    if (error.code.empty()) return judgement;
    judgement = {Verdict::kAgain, absl::StatusCode::kUnavailable,
                 absl::StrCat("HTTP ", response.status)};
  }
  if (judgement.verdict == Verdict::kFailed && IsPassing(error.code)) {
    judgement.verdict = Verdict::kAgain;
    judgement.code = absl::StatusCode::kUnavailable;
  }
  if (error.code == "SlowDown") judgement.verdict = Verdict::kAgainSlower;
  if (!error.code.empty()) absl::StrAppend(&judgement.reason, " ", error.code);
  if (!error.message.empty()) absl::StrAppend(&judgement.reason, ": ", error.message);
  if (const std::string& id = response.Header("x-amz-request-id"); !id.empty()) {
    absl::StrAppend(&judgement.reason, " (request id ", base::ToUtf8(id, 100), ")");
  }
  const std::string& header = response.Header("x-amz-bucket-region");
  const std::string region = header.empty() ? error.region : base::ToUtf8(header, 100);
  if ((response.status == 301 || response.status == 307 || response.status == 400) &&
      !region.empty()) {
    judgement.code = absl::StatusCode::kFailedPrecondition;
    absl::StrAppend(&judgement.reason, "; the bucket is in the region ", region,
                    ": set AWS_REGION or the region of its entry in spec.storage to it");
  }
  return judgement;
}

S3Connection::S3Connection(S3Address address, const StoreOptions& options,
                           std::unique_ptr<HttpClient> http,
                           std::shared_ptr<RenewedCredentials> credentials)
    : address_(std::move(address)),
      clock_(*options.clock),
      http_(std::move(http)),
      credentials_(std::move(credentials)),
      limit_(options.concurrency),
      meter_(options.prices),
      client_(*http_, clock_, limit_, options.retries, options.deadlines, &meter_) {}

std::string S3Connection::UriOf(std::string_view name) const {
  return absl::StrCat(address_.uri, "/", base::ToUtf8(name, 1024));
}

absl::StatusOr<HttpRequest> S3Connection::Signed(const S3Request& request,
                                                 const AwsCredentials& credentials,
                                                 const std::string& payload_hash) const {
  const std::string path = address_.Path(request.key);
  HttpRequest sent{.method = request.method,
                   .url = absl::StrCat(address_.endpoint.origin(), path),
                   .headers = request.headers,
                   .body = request.body,
                   .into = request.into,
                   .most_body_bytes = request.most_body_bytes};
  if (!request.query.empty()) absl::StrAppend(&sent.url, "?", SortedQuery(request.query));
  if (credentials.anonymous()) return sent;
  sent.headers.emplace_back("host", address_.endpoint.authority);
  sent.headers.emplace_back("x-amz-content-sha256", payload_hash);
  SignV4({.method = request.method,
          .path = path,
          .query = request.query,
          .payload_hash = payload_hash},
         credentials, {.region = address_.region, .service = "s3"}, clock_.WallNow(),
         &sent.headers);
  return sent;
}

absl::StatusOr<PersistentClient::Answer> S3Connection::Send(
    const std::string& what, const S3Request& request,
    const std::function<Judgement(const HttpResponse&)>& judge) {
  const std::string payload_hash = Sha256Hex(request.body);
  std::shared_ptr<const AwsCredentials> credentials;
  bool renewed = false;
  HttpCall call{.what = what};
  call.prepare = [&]() -> absl::StatusOr<HttpRequest> {
    HETERO_ASSIGN_OR_RETURN(credentials, credentials_->Get());
    return Signed(request, *credentials, payload_hash);
  };
  call.judge = [&](const HttpResponse& response) {
    Judgement judgement = judge(response);
    if (judgement.verdict == Verdict::kFailed && !renewed && SaysExpired(response)) {
      renewed = true;
      credentials_->Expired(*credentials);
      judgement.verdict = Verdict::kAgain;
    }
    return judgement;
  };
  return client_.Send(call);
}

}  // namespace hetero::storage
