#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "runtime/storage/aws/credential_variables.h"
#include "runtime/storage/aws/credentials.h"
#include "runtime/storage/http/concurrency_limit.h"
#include "runtime/storage/http/persistent_client.h"
#include "runtime/storage/http/request_meter.h"

namespace hetero::storage {

// How a store is reached. What is empty is found as AWS's own tools find it.
struct StoreOptions {
  // Of s3://. "https://s3.example.com", http:// too; else AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL,
  // AWS's own of the region.
  std::string endpoint;
  std::string region;  // else AWS_REGION, AWS_DEFAULT_REGION, the profile's, "us-east-1"
  // The bucket in the path, not in the host's name; else: with an endpoint of one's own, and for
  // buckets with dots.
  std::optional<bool> path_style;
  bool anonymous = false;  // requests are not signed
  // The access keys' variables, and nowhere else is looked for them; else as AWS's tools look.
  std::optional<KeyVariables> keys;
  int list_page = 1000;  // keys in a page of a listing, 1..1000

  // A PEM file with the authorities to trust; else AWS_CA_BUNDLE, the system's.
  std::string ca_bundle;
  HttpDeadlines deadlines;
  RetryOptions retries;
  ConcurrencyLimit::Options concurrency;
  RequestPrices prices;           // for RequestMeter::OfProcess()
  int64_t part_bytes = 16 << 20;  // of an upload in parts; S3 takes 5 MiB and more, 10,000 parts

  base::Clock* clock = &base::Clock::Real();
  Environment environment = ProcessEnvironment();
};

}  // namespace hetero::storage
