#include "base/http_endpoint.h"

#include <httplib.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/status_macros.h"
#include "base/thread.h"

namespace hetero::metrics {
namespace {

constexpr char kPlainText[] = "text/plain; charset=utf-8";

HttpRequest ToRequest(const httplib::Request& from) {
  HttpRequest request;
  request.path = from.path;
  for (const auto& [name, value] : from.params) request.query[name] = value;
  return request;
}

// A request that has arrived in full, and the answer to it.
class Exchange : public httplib::Stream {
 public:
  explicit Exchange(const std::string& request) : request_(request) {}

  bool is_readable() const override { return read_ < request_.size(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override {
    const size_t count = std::min(size, request_.size() - read_);
    std::memcpy(to, request_.data() + read_, count);
    read_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, size_t size) override {
    answer_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }

  std::string TakeAnswer() { return std::move(answer_); }

 private:
  const std::string& request_;
  size_t read_ = 0;
  std::string answer_;
};

}  // namespace

struct HttpEndpoint::Impl {
  // httplib's reading of requests and writing of answers, without its sockets and threads: it has a
  // thread wait for each caller, for as long as that one sends a byte every few seconds.
  class Requests : public httplib::Server {
   public:
    std::string Answer(const std::string& request) {
      Exchange exchange(request);
      bool closed = false;
      process_request(exchange, /*close_connection=*/true, closed, nullptr);
      return exchange.TakeAnswer();
    }
  };

  explicit Impl(HttpLimits given) : limits(given) {}

  absl::Status Ready() {
    Readiness current;
    {
      const base::MutexLock lock(mutex);
      current = readiness;
    }
    return current ? current() : absl::OkStatus();
  }

  const HttpLimits limits;
  Requests requests;
  base::Mutex mutex;
  Readiness readiness ABSL_GUARDED_BY(mutex);
  int port = 0;
  std::optional<HttpConnections> connections;
  std::jthread thread;
};

HttpEndpoint::HttpEndpoint(HttpLimits limits) : impl_(std::make_unique<Impl>(limits)) {
  impl_->requests.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("ok\n", kPlainText);
  });
  impl_->requests.Get("/readyz", [this](const httplib::Request&, httplib::Response& response) {
    const absl::Status status = impl_->Ready();
    response.status = status.ok() ? 200 : 503;
    response.set_content((status.ok() ? "ready" : std::string(status.message())) + "\n",
                         kPlainText);
  });
}

HttpEndpoint::HttpEndpoint(const Registry& registry, HttpLimits limits) : HttpEndpoint(limits) {
  impl_->requests.Get(
      "/metrics", [&registry](const httplib::Request&, httplib::Response& response) {
        response.set_content(registry.Text(), "text/plain; version=0.0.4; charset=utf-8");
      });
}

HttpEndpoint::~HttpEndpoint() { Stop(); }

void HttpEndpoint::Handle(const std::string& path, Handler handler) {
  impl_->requests.Get(path, [handler = std::move(handler)](const httplib::Request& request,
                                                           httplib::Response& response) {
    const HttpResponse answer = handler(ToRequest(request));
    response.status = answer.status;
    response.set_content(answer.body, answer.content_type);
  });
}

void HttpEndpoint::SetReadiness(Readiness readiness) {
  const base::MutexLock lock(impl_->mutex);
  impl_->readiness = std::move(readiness);
}

absl::Status HttpEndpoint::Start(const std::string& address, int port) {
  HETERO_ASSIGN_OR_RETURN(base::Socket listener, base::ListenOn(address, port));
  impl_->port = base::PortOf(listener);
  impl_->connections.emplace(
      std::move(listener), impl_->limits,
      [this](const std::string& request) { return impl_->requests.Answer(request); });
  impl_->thread = std::jthread([this](std::stop_token stop) {
    base::SetThreadName("http");
    impl_->connections->Run(std::move(stop));
  });
  return absl::OkStatus();
}

int HttpEndpoint::port() const { return impl_->port; }

void HttpEndpoint::Stop() {
  if (!impl_->thread.joinable()) return;
  impl_->thread.request_stop();
  impl_->thread.join();
}

}  // namespace hetero::metrics
