#include "base/http_endpoint.h"

#include <httplib.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
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

// httplib's default is SO_REUSEPORT, with which two processes would share a port unnoticed.
void ReuseAddressOnly(socket_t socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

}  // namespace

struct HttpEndpoint::Impl {
  absl::Status Ready() {
    Readiness current;
    {
      const base::MutexLock lock(mutex);
      current = readiness;
    }
    return current ? current() : absl::OkStatus();
  }

  httplib::Server server;
  std::stop_source streams;
  base::Mutex mutex;
  Readiness readiness ABSL_GUARDED_BY(mutex);
  int port = 0;
  std::atomic<bool> ended{false};
  std::jthread thread;
};

HttpEndpoint::HttpEndpoint(const Registry& registry, int threads)
    : impl_(std::make_unique<Impl>()) {
  httplib::Server& server = impl_->server;
  server.new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
  server.set_socket_options(ReuseAddressOnly);
  // An idle connection would hold a thread, and Stop(), for seconds.
  server.set_keep_alive_max_count(1);
  server.Get("/metrics", [&registry](const httplib::Request&, httplib::Response& response) {
    response.set_content(registry.Text(), "text/plain; version=0.0.4; charset=utf-8");
  });
  server.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("ok\n", kPlainText);
  });
  server.Get("/readyz", [this](const httplib::Request&, httplib::Response& response) {
    const absl::Status status = impl_->Ready();
    response.status = status.ok() ? 200 : 503;
    response.set_content((status.ok() ? "ready" : std::string(status.message())) + "\n",
                         kPlainText);
  });
}

HttpEndpoint::~HttpEndpoint() { Stop(); }

void HttpEndpoint::Handle(const std::string& path, Handler handler) {
  impl_->server.Get(path, [handler = std::move(handler)](const httplib::Request& request,
                                                         httplib::Response& response) {
    const HttpResponse answer = handler(ToRequest(request));
    response.status = answer.status;
    response.set_content(answer.body, answer.content_type);
  });
}

void HttpEndpoint::HandleStream(const std::string& path, const std::string& content_type,
                                std::function<NextChunk()> open) {
  impl_->server.Get(path, [this, content_type, open = std::move(open)](
                              const httplib::Request&, httplib::Response& response) {
    response.set_header("Cache-Control", "no-cache");
    response.set_chunked_content_provider(
        content_type,
        [next = open(), stop = impl_->streams.get_token()](size_t, httplib::DataSink& sink) {
          const std::optional<std::string> chunk =
              stop.stop_requested() ? std::nullopt : next(stop);
          if (!chunk) {
            sink.done();
            return true;
          }
          return chunk->empty() || sink.write(chunk->data(), chunk->size());
        });
  });
}

void HttpEndpoint::SetReadiness(Readiness readiness) {
  const base::MutexLock lock(impl_->mutex);
  impl_->readiness = std::move(readiness);
}

absl::Status HttpEndpoint::Start(const std::string& address, int port) {
  errno = 0;
  const int bound = port == 0 ? impl_->server.bind_to_any_port(address)
                    : impl_->server.bind_to_port(address, port) ? port
                                                                : -1;
  if (bound < 0) {
    const std::string reason = errno != 0 ? std::strerror(errno) : "the address is not known";
    return absl::UnavailableError("cannot listen on " + address + " port " + std::to_string(port) +
                                  ": " + reason + "; choose another port, or 0 for any free one");
  }
  impl_->port = bound;
  impl_->thread = std::jthread([this] {
    base::SetThreadName("http");
    impl_->server.listen_after_bind();
    impl_->ended = true;
  });
  // httplib ignores a stop that comes before it runs.
  while (!impl_->server.is_running() && !impl_->ended) {
    base::Clock::Real().SleepFor(std::chrono::microseconds(100));
  }
  return absl::OkStatus();
}

int HttpEndpoint::port() const { return impl_->port; }

void HttpEndpoint::Stop() {
  impl_->streams.request_stop();
  if (!impl_->thread.joinable()) return;
  impl_->server.stop();
  impl_->thread.join();
}

}  // namespace hetero::metrics
