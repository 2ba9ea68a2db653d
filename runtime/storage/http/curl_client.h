#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "runtime/storage/http/authorities.h"
#include "runtime/storage/http/http_client.h"

namespace hetero::storage {

// HTTP/1.1 by libcurl. Each exchange has a connection for itself, which the next one to the same
// host takes over; as many are kept as were ever in use at once, at most 256. libcurl stays inside
// curl_client.cpp.
class CurlClient : public HttpClient {
 public:
  struct Options {
    std::string ca_bundle;  // a PEM file with the authorities to trust; empty: the system's
    std::string user_agent = "hetero";
  };
  CurlClient();
  explicit CurlClient(Options options);
  ~CurlClient() override;  // when no call is underway

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request) override;

 private:
  class Session;
  // Read when they are needed first: whoever speaks http:// has none perhaps.
  const Authorities& TrustedAuthorities();
  std::unique_ptr<Session> Take();
  void Return(std::unique_ptr<Session> session);

  const Options options_;
  std::once_flag authorities_read_;
  std::unique_ptr<const Authorities> authorities_;
  base::Mutex mutex_;
  // The one that was used last is at the end, and is taken first: its connection is the freshest.
  std::vector<std::unique_ptr<Session>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::storage
