#pragma once

#include <memory>

#include "runtime/storage/aws/credentials.h"
#include "runtime/storage/http/http_client.h"

// Credentials that a service hands out for a while. Each asks up to three times, and for 10 s at
// most altogether.
namespace hetero::storage {

struct CredentialServices {
  HttpClient& http;  // outlives the sources
  base::Clock& clock;
  Environment environment;
};

// IAM roles for service accounts: AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, exchanged at STS of
// the region (AWS_REGION, AWS_DEFAULT_REGION; AWS_ENDPOINT_URL_STS for another server).
std::unique_ptr<CredentialSource> WebIdentityCredentials(CredentialServices services);

// EKS Pod Identity and containers of ECS: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, or ..._FULL_URI,
// with AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE or AWS_CONTAINER_AUTHORIZATION_TOKEN. A full one is
// taken only with https or of a loopback or link-local agent: the token is sent there.
std::unique_ptr<CredentialSource> ContainerCredentials(CredentialServices services);

// The role of the EC2 instance (IMDSv2), unless AWS_EC2_METADATA_DISABLED is true;
// AWS_EC2_METADATA_SERVICE_ENDPOINT for another address. kNotFound where nobody answers.
std::unique_ptr<CredentialSource> InstanceCredentials(CredentialServices services);

}  // namespace hetero::storage
