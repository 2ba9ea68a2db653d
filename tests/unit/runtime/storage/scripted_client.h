#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/storage/http/http_client.h"

namespace hetero::storage {

// Answers each request by a function, and keeps them all. A 2xx body goes where it was asked for.
class ScriptedClient : public HttpClient {
 public:
  using Script = std::function<absl::StatusOr<HttpResponse>(const HttpRequest& request)>;
  explicit ScriptedClient(Script script) : script_(std::move(script)) {}

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request) override {
    requests.push_back(request);
    bodies.emplace_back(request.body);
    absl::StatusOr<HttpResponse> response = script_(request);
    if (response.ok() && response->status / 100 == 2 && !request.into.empty()) {
      const size_t size = std::min(response->body.size(), request.into.size());
      std::memcpy(request.into.data(), response->body.data(), size);
      response->received = static_cast<int64_t>(size);
      response->overflow = size < response->body.size();
      response->body.clear();
    }
    return response;
  }

  std::vector<HttpRequest> requests;
  std::vector<std::string> bodies;

 private:
  const Script script_;
};

inline std::string HeaderOf(const HttpRequest& request, const std::string& name) {
  for (const auto& [key, value] : request.headers) {
    if (key == name) return value;
  }
  return "";
}

}  // namespace hetero::storage
