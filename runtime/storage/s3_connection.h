#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/storage/aws/renewed_credentials.h"
#include "runtime/storage/aws/s3_replies.h"
#include "runtime/storage/http/persistent_client.h"
#include "runtime/storage/s3_address.h"

namespace hetero::storage {

struct S3Request {
  std::string method = "GET";
  std::string key;  // empty: of the bucket
  Query query;
  HttpHeaders headers;
  std::string_view body;
  absl::Span<uint8_t> into;
  int64_t most_body_bytes = 1 << 20;
};

// JudgeStatus() with what S3 says of its errors: codes, messages, the request's id, and where the
// bucket is when it is not where it was looked for. A 200 whose body is an error is one.
Judgement JudgeS3(const HttpResponse& response);

// Signed requests to one bucket. Thread-safe.
class S3Connection {
 public:
  // `options.clock` outlives it.
  S3Connection(S3Address address, const StoreOptions& options, std::unique_ptr<HttpClient> http,
               std::shared_ptr<RenewedCredentials> credentials);

  const S3Address& address() const { return address_; }
  // "s3://bucket/prefix/name"
  std::string UriOf(std::string_view name) const;

  // `what` begins errors. Credentials that the reply's body calls ended are renewed once on
  // the way.
  absl::StatusOr<PersistentClient::Answer> Send(
      const std::string& what, const S3Request& request,
      const std::function<Judgement(const HttpResponse&)>& judge = JudgeS3);

 private:
  absl::StatusOr<HttpRequest> Signed(const S3Request& request, const AwsCredentials& credentials,
                                     const std::string& payload_hash) const;

  const S3Address address_;
  base::Clock& clock_;
  const std::unique_ptr<HttpClient> http_;
  const std::shared_ptr<RenewedCredentials> credentials_;
  ConcurrencyLimit limit_;
  const RequestMeter meter_;
  PersistentClient client_;
};

}  // namespace hetero::storage
