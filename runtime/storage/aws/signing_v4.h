#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "runtime/storage/aws/credentials.h"
#include "runtime/storage/http/http_client.h"
#include "runtime/storage/http/url.h"

// AWS Signature Version 4, as S3 takes it (the path is escaped once and kept as it is):
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
namespace hetero::storage {

// Lower-case hexadecimal.
std::string Sha256Hex(std::string_view bytes);

struct SigningScope {
  std::string region;
  std::string service;  // "s3"
};

struct RequestToSign {
  std::string method;
  std::string path;          // escaped
  Query query;               // not escaped
  std::string payload_hash;  // Sha256Hex(body)
};

// Adds x-amz-date, x-amz-security-token where there is one, and authorization to `headers`; of
// those that it has already (Host has to be one) all are signed. `credentials` are not anonymous.
void SignV4(const RequestToSign& request, const AwsCredentials& credentials,
            const SigningScope& scope, base::WallTime now, HttpHeaders* headers);

}  // namespace hetero::storage
