#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/transport.h"

namespace hetero::kube {

inline Response JsonReply(int status, const nlohmann::json& body) {
  return {.status = status, .headers = {{"content-type", "application/json"}}, .body = body.dump()};
}

// The API server's way to say no.
inline nlohmann::json StatusObject(int code, const std::string& reason,
                                   const std::string& message) {
  return {{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Failure"},
          {"code", code},     {"reason", reason},   {"message", message}};
}
inline Response ErrorReply(int code, const std::string& reason, const std::string& message) {
  return JsonReply(code, StatusObject(code, reason, message));
}

// A transport without a network. Replies come from the script, first in, first out, and when that
// is used up from the standing handlers; both run on the caller's thread. Without either: 404.
class FakeTransport : public Transport {
 public:
  using SendHandler =
      std::function<absl::StatusOr<Response>(const Request& request, std::stop_token stop)>;
  using StreamHandler = std::function<absl::StatusOr<Response>(
      const Request& request, const OnLine& on_line, std::stop_token stop)>;

  void Always(SendHandler handler) {
    std::lock_guard lock(mutex_);
    always_ = std::move(handler);
  }
  void AlwaysStream(StreamHandler handler) {
    std::lock_guard lock(mutex_);
    always_stream_ = std::move(handler);
  }
  void Then(SendHandler handler) {
    std::lock_guard lock(mutex_);
    script_.push_back(std::move(handler));
  }
  void Then(absl::StatusOr<Response> reply) {
    Then([reply = std::move(reply)](const Request&, std::stop_token) { return reply; });
  }
  void ThenStream(StreamHandler handler) {
    std::lock_guard lock(mutex_);
    stream_script_.push_back(std::move(handler));
  }
  // These lines, then `end`.
  void ThenLines(std::vector<std::string> lines,
                 absl::StatusOr<Response> end = Response{.status = 200}) {
    ThenStream(
        [lines = std::move(lines), end = std::move(end)](
            const Request&, const OnLine& on_line, std::stop_token) -> absl::StatusOr<Response> {
          for (const std::string& line : lines) {
            if (!on_line(line)) return Response{.status = 200};
          }
          return end;
        });
  }

  // What was asked so far.
  std::vector<Request> requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }

  // Of the streams asked for so far: how long they may be silent.
  std::vector<base::Duration> idle_limits() const {
    std::lock_guard lock(mutex_);
    return idle_limits_;
  }

  absl::StatusOr<Response> Send(const Request& request, base::Duration timeout,
                                std::stop_token stop) override {
    return Take(request, &script_, &always_)(request, stop);
  }
  absl::StatusOr<Response> Stream(const Request& request, base::Duration idle, base::Duration limit,
                                  const OnLine& on_line, std::stop_token stop) override {
    {
      std::lock_guard lock(mutex_);
      idle_limits_.push_back(idle);
    }
    return Take(request, &stream_script_, &always_stream_)(request, on_line, stop);
  }

 private:
  template <typename Handler>
  Handler Take(const Request& request, std::deque<Handler>* script, Handler* always) {
    std::lock_guard lock(mutex_);
    requests_.push_back(request);
    if (script->empty()) return *always;
    Handler handler = std::move(script->front());
    script->pop_front();
    return handler;
  }

  mutable std::mutex mutex_;  // guards all below
  std::deque<SendHandler> script_;
  std::deque<StreamHandler> stream_script_;
  SendHandler always_ = [](const Request&, std::stop_token) {
    return ErrorReply(404, "NotFound", "not found");
  };
  StreamHandler always_stream_ = [](const Request&, const OnLine&, std::stop_token) {
    return ErrorReply(404, "NotFound", "not found");
  };
  std::vector<Request> requests_;
  std::vector<base::Duration> idle_limits_;
};

}  // namespace hetero::kube
