#include "base/http_endpoint.h"

#include <httplib.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "base/thread.h"

namespace hetero::metrics {
namespace {

constexpr char kPlainText[] = "text/plain; charset=utf-8";

void Give(const HttpResponse& answer, httplib::Response& response) {
  response.status = answer.status;
  for (const auto& [name, value] : answer.headers) response.set_header(name.c_str(), value);
  response.set_content(answer.body, answer.content_type);
}

// Kubernetes' API server, when it passes a page on, breaks off in the middle of what is packed as
// anything else.
void AskForGzipAtMost(httplib::Request& request) {
  constexpr char kName[] = "Accept-Encoding";
  const bool gzip = absl::StrContains(request.get_header_value(kName), "gzip");
  request.headers.erase(kName);
  if (gzip) request.set_header(kName, "gzip");
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
    HttpConnections::Reply Answer(const std::string& request, const base::Socket& caller) {
      Exchange exchange(request);
      bool closed = false;
      caller_ = &caller;
      chosen = nullptr;
      process_request(exchange, /*close_connection=*/true, closed, AskForGzipAtMost);
      caller_ = nullptr;
      if (chosen == nullptr) return {.bytes = exchange.TakeAnswer(), .take_over = {}};
      return {.bytes = "",
              .take_over = [to = chosen](base::Socket socket) { to->Add(std::move(socket)); }};
    }

    HttpRequest ToRequest(const httplib::Request& from) const {
      HttpRequest request;
      request.path = from.path;
      for (const auto& [name, value] : from.params) request.query[name] = value;
      request.origin = {.host = from.get_header_value("Host"),
                        .forwarded_uri = from.get_header_value("X-Forwarded-Uri"),
                        .from_this_machine = caller_ != nullptr && IsFromThisMachine(*caller_)};
      return request;
    }

    EventStream* chosen = nullptr;  // by the handler of the request that is being answered

   private:
    const base::Socket* caller_ = nullptr;  // whose request is being answered
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
  impl_->requests.Get(path, [this, handler = std::move(handler)](const httplib::Request& request,
                                                                 httplib::Response& response) {
    Give(handler(impl_->requests.ToRequest(request)), response);
  });
}

void HttpEndpoint::HandleStream(const std::string& path, EventStream& stream) {
  impl_->requests.Get(path, [this, &stream](const httplib::Request& request,
                                            httplib::Response& response) {
    if (request.method != "GET") return response.set_content("", "text/event-stream");
    if (!stream.full()) {
      impl_->requests.chosen = &stream;
      return;
    }
    response.status = 503;
    response.set_content(absl::StrCat(stream.limits().viewers,
                                      " pages look at this already, which is all that it serves "
                                      "at once; close one of them and load this one again\n"),
                         kPlainText);
  });
}

void HttpEndpoint::SetGuard(Guard guard) {
  impl_->requests.set_pre_routing_handler(
      [this, guard = std::move(guard)](const httplib::Request& request,
                                       httplib::Response& response) {
        const std::optional<HttpResponse> answer = guard(impl_->requests.ToRequest(request));
        if (!answer) return httplib::Server::HandlerResponse::Unhandled;
        Give(*answer, response);
        return httplib::Server::HandlerResponse::Handled;
      });
}

void HttpEndpoint::SetReadiness(Readiness readiness) {
  const base::MutexLock lock(impl_->mutex);
  impl_->readiness = std::move(readiness);
}

absl::Status HttpEndpoint::Start(const std::string& address, int port) {
  HETERO_ASSIGN_OR_RETURN(base::Socket listener, base::ListenOn(address, port));
  return Start(std::move(listener));
}

absl::Status HttpEndpoint::Start(base::Socket listener) {
  impl_->port = base::PortOf(listener);
  impl_->connections.emplace(std::move(listener), impl_->limits,
                             [this](const std::string& request, const base::Socket& caller) {
                               return impl_->requests.Answer(request, caller);
                             });
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

std::optional<HttpResponse> RefuseUnknownHosts(const HttpRequest& request) {
  if (IsKnownHost(request.origin)) return std::nullopt;
  return HttpResponse{
      .status = 403,
      .body =
          "this port answers under addresses, localhost and names of the cluster only, so that "
          "no page elsewhere can read it; call it by its address\n"};
}

}  // namespace hetero::metrics
