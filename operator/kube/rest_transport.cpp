#include "operator/kube/rest_transport.h"

#include <cpprest/http_client.h>
#include <pplx/threadpool.h>

#include <algorithm>
#include <exception>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/mutex.h"
#include "base/status_macros.h"
#include "operator/kube/exchange.h"
#include "operator/kube/line_framer.h"
#include "operator/kube/rest_connections.h"
#include "operator/kube/rest_sink.h"

namespace hetero::kube {
namespace {

namespace http = web::http;

constexpr int kHttpsPort = 443;
constexpr size_t kLongestBody = size_t{256} << 20;
constexpr size_t kLongestErrorBody = size_t{1} << 20;
constexpr size_t kLongestLine = size_t{16} << 20;
// Of a stream, read ahead of a slow reader.
constexpr size_t kStreamWindow = size_t{1} << 20;

// cpprestsdk's sockets do not bear that one thread closes them while another one reads: a request
// given up while its bytes arrive could end the process. There is one thread instead of its 40, and
// requests are started and given up there only. It moves bytes and encrypts; no call of ours waits
// on it.
absl::Status StartNetworkThread() {
  static const absl::Status status = [] {
    try {
      crossplat::threadpool::initialize_with_threads(1);
      return absl::OkStatus();
    } catch (const std::exception& error) {
      return absl::FailedPreconditionError(error.what());
    }
  }();
  return status;
}

template <typename Work>
void OnNetworkThread(Work work) {
  crossplat::threadpool::shared_instance().service().post(std::move(work));
}

base::Instant After(base::Duration duration) {
  constexpr base::Duration kLongest = std::chrono::hours(24 * 3650);  // keeps the sum representable
  return base::Clock::Real().Now() + std::min(duration, kLongest);
}

std::map<std::string, std::string> LowerCaseHeaders(const http::http_headers& headers) {
  std::map<std::string, std::string> lower;
  for (const auto& [name, value] : headers) {
    std::string key = name;
    std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) {
      return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    });
    lower[key] = value;
  }
  return lower;
}

// The answer to a request, as soon as its head is there. It lives until cpprestsdk has let go of
// the request, and only then tells the caller that all is well: the connection is kept for the next
// request by then.
struct Reply {
  Reply(std::shared_ptr<Exchange> e, std::shared_ptr<InFlight> f)
      : exchange(std::move(e)), in_flight(std::move(f)) {
    in_flight->Begin();
  }
  ~Reply() {
    exchange->OnEnd();
    in_flight->End();
  }

  const std::shared_ptr<Exchange> exchange;
  const std::shared_ptr<InFlight> in_flight;
  pplx::task<http::http_response> head;
};

// cpprestsdk takes an informational (1xx) reply for the whole answer and would read the real one as
// the answer to the connection's next request. An exception here closes the connection.
void RefuseInformational(Reply& reply, http::message_direction::direction direction) {
  if (direction != http::message_direction::download) return;
  if (!reply.head.is_done()) return;
  const int status = reply.head.get().status_code();
  if (status < 200) throw std::runtime_error("informational reply " + std::to_string(status));
}

void SendOnNetworkThread(http::client::http_client& client, const http::http_request& message,
                         const pplx::cancellation_token& token, const std::shared_ptr<Reply>& reply,
                         const std::shared_ptr<TlsSettings>& tls) {
  const std::shared_ptr<Exchange> exchange = reply->exchange;
  if (exchange->abandoned()) return;
  try {
    reply->head = client.request(message, token);
    reply->head
        .then([exchange](http::http_response response) {
          const int status = response.status_code();
          if (status < 200) {
            throw std::runtime_error("informational reply " + std::to_string(status));
          }
          exchange->OnHead(status, LowerCaseHeaders(response.headers()));
          return response.content_ready();
        })
        .then([tls, reply](pplx::task<http::http_response> done) {
          try {
            done.get();
          } catch (...) {
            reply->exchange->OnFailure(StatusOfException(*tls));
          }
        });
  } catch (...) {
    exchange->OnFailure(StatusOfException(*tls));
  }
}

class RestTransport : public Transport {
 public:
  RestTransport(ClusterAccess access, web::uri server)
      : access_(std::move(access)), server_(std::move(server)) {
    const bool v6 = server_.host().find(':') != std::string::npos;
    host_ = (v6 ? "[" + server_.host() + "]" : server_.host()) + ":" +
            std::to_string(server_.port() > 0 ? server_.port() : kHttpsPort);
    // A name goes into the handshake as well, from here. cpprestsdk would write IPv6 addresses
    // without their brackets.
    host_header_ = !access_.tls_server_name.empty() ? access_.tls_server_name : v6 ? host_ : "";
  }
  ~RestTransport() override { in_flight_->AwaitNone(); }

  absl::StatusOr<Response> Send(const Request& request, base::Duration timeout,
                                std::stop_token stop) override;
  absl::StatusOr<Response> Stream(const Request& request, base::Duration idle, base::Duration limit,
                                  const OnLine& on_line, std::stop_token stop) override;
  std::string host() const override { return host_; }

 private:
  // A request under way, and how to end it.
  struct Call {
    std::shared_ptr<Exchange> exchange;
    pplx::cancellation_token_source cancel;
    ~Call() {
      exchange->Abandon();
      if (!exchange->ended()) OnNetworkThread([cancel = cancel] { cancel.cancel(); });
    }
  };
  struct Shown {
    Credential credential;
    std::shared_ptr<Connections> connections;
  };

  absl::StatusOr<Shown> Show();
  // The same, when the server has just answered 401 to `refused`. Of many calls refused at once,
  // the first one replaces what they share.
  absl::StatusOr<Shown> ShowInPlaceOf(const Credential& refused);
  Shown Use(Credential credential);
  void Start(const Request& request, const Shown& shown, bool stream, Call& call);
  absl::StatusOr<Response> SendOnce(const Request& request, const Shown& shown,
                                    base::Instant deadline, const std::stop_token& stop);
  absl::StatusOr<Response> StreamOnce(const Request& request, const Shown& shown,
                                      base::Duration idle, base::Instant deadline,
                                      const OnLine& on_line, const std::stop_token& stop);
  template <typename Once>
  absl::StatusOr<Response> WithCredential(const Request& request, const Once& once);

  const ClusterAccess access_;
  const web::uri server_;
  std::string host_;
  std::string host_header_;  // empty: cpprestsdk's own
  const std::shared_ptr<InFlight> in_flight_ = std::make_shared<InFlight>();
  // Held while a refused credential is replaced.
  base::Mutex refresh_ ABSL_ACQUIRED_BEFORE(mutex_);
  base::Mutex mutex_;
  Shown shown_ ABSL_GUARDED_BY(mutex_);
};

bool SameCredential(const Credential& a, const Credential& b) {
  return a.token == b.token && a.certificate_pem == b.certificate_pem && a.key_pem == b.key_pem;
}

absl::StatusOr<RestTransport::Shown> RestTransport::Show() {
  if (access_.credentials == nullptr) return Use({});
  HETERO_ASSIGN_OR_RETURN(Credential credential, access_.credentials->Get(/*refresh=*/false));
  return Use(std::move(credential));
}

absl::StatusOr<RestTransport::Shown> RestTransport::ShowInPlaceOf(const Credential& refused) {
  const base::MutexLock refresh(refresh_);
  bool replace = false;
  {
    const base::MutexLock lock(mutex_);
    replace = SameCredential(shown_.credential, refused);
  }
  HETERO_ASSIGN_OR_RETURN(Credential credential, access_.credentials->Get(replace));
  return Use(std::move(credential));
}

RestTransport::Shown RestTransport::Use(Credential credential) {
  const base::MutexLock lock(mutex_);
  if (shown_.connections == nullptr ||
      credential.certificate_pem != shown_.credential.certificate_pem ||
      credential.key_pem != shown_.credential.key_pem) {
    shown_.connections = std::make_shared<Connections>(access_, server_, credential);
  }
  shown_.credential = std::move(credential);
  return shown_;
}

void RestTransport::Start(const Request& request, const Shown& shown, bool stream, Call& call) {
  const auto& exchange = call.exchange;
  const auto reply = std::make_shared<Reply>(exchange, in_flight_);
  try {
    http::http_request message(request.method);
    message.set_request_uri(web::uri(request.path));
    if (!request.body.empty()) message.set_body(request.body, request.content_type);
    http::http_headers& headers = message.headers();
    headers.add("Accept", request.accept);
    if (!request.user_agent.empty()) headers.add("User-Agent", request.user_agent);
    if (!host_header_.empty()) headers.add("Host", host_header_);
    if (!access_.act_as.empty()) headers.add("Impersonate-User", access_.act_as);
    if (!shown.credential.token.empty() && server_.scheme() == "https") {
      headers.add("Authorization", "Bearer " + shown.credential.token);
    }
    const std::shared_ptr<concurrency::streams::details::basic_streambuf<uint8_t>> sink =
        std::make_shared<ExchangeSink>(exchange);
    message.set_response_stream(concurrency::streams::streambuf<uint8_t>(sink).create_ostream());
    message.set_progress_handler(
        [reply](http::message_direction::direction direction, utility::size64_t) {
          RefuseInformational(*reply, direction);
        });
    OnNetworkThread(
        [message, reply, stream, connections = shown.connections, token = call.cancel.get_token()] {
          auto& client = stream ? connections->streams : connections->requests;
          SendOnNetworkThread(client, message, token, reply, connections->tls);
        });
  } catch (...) {
    exchange->OnFailure(StatusOfException(*shown.connections->tls));
  }
}

absl::StatusOr<Response> RestTransport::SendOnce(const Request& request, const Shown& shown,
                                                 base::Instant deadline,
                                                 const std::stop_token& stop) {
  Call call{
      std::make_shared<Exchange>(Exchange::Limits{.body = kLongestBody, .window = kLongestBody})};
  Start(request, shown, /*stream=*/false, call);
  switch (call.exchange->AwaitEnd(deadline, stop)) {
    case Exchange::Wake::kNews:
      break;
    case Exchange::Wake::kDeadline:
      return absl::DeadlineExceededError(
          call.exchange->has_head()
              ? "no complete reply in time"
              : "no answer in time: it is overloaded, or something on the way drops the packets, "
                "such as an egress NetworkPolicy");
    case Exchange::Wake::kStopped:
      return absl::CancelledError("stopped");
  }
  HETERO_RETURN_IF_ERROR(call.exchange->failure());
  Response response = call.exchange->head();
  response.body = call.exchange->TakeBytes();
  return response;
}

absl::StatusOr<Response> RestTransport::StreamOnce(const Request& request, const Shown& shown,
                                                   base::Duration idle, base::Instant deadline,
                                                   const OnLine& on_line,
                                                   const std::stop_token& stop) {
  Call call{std::make_shared<Exchange>(
      Exchange::Limits{.body = std::numeric_limits<size_t>::max(), .window = kStreamWindow})};
  Exchange& exchange = *call.exchange;
  Start(request, shown, /*stream=*/true, call);
  LineFramer framer(kLongestLine);
  std::string error_body;
  while (true) {
    switch (exchange.AwaitNews(std::min(deadline, After(idle)), stop)) {
      case Exchange::Wake::kNews:
        break;
      case Exchange::Wake::kDeadline:
        if (base::Clock::Real().Now() >= deadline) {
          return absl::DeadlineExceededError("the stream lasts longer than asked for");
        }
        if (!exchange.has_head()) return absl::UnavailableError("no answer");
        return absl::DeadlineExceededError("the stream has fallen silent");
      case Exchange::Wake::kStopped:
        return absl::CancelledError("stopped");
    }
    // In this order: what comes before the end is not to be missed.
    const bool ended = exchange.ended();
    if (exchange.has_head()) {
      const std::string bytes = exchange.TakeBytes();
      if (exchange.head().status == 200) {
        HETERO_RETURN_IF_ERROR(framer.Feed(bytes, on_line));
        if (framer.stopped()) return exchange.head();
      } else {
        error_body.append(bytes, 0, kLongestErrorBody - error_body.size());
      }
    }
    if (!ended) continue;
    HETERO_RETURN_IF_ERROR(exchange.failure());
    Response response = exchange.head();
    if (response.status == 200) {
      HETERO_RETURN_IF_ERROR(framer.End(on_line));
    } else {
      response.body = std::move(error_body);
    }
    return response;
  }
}

template <typename Once>
absl::StatusOr<Response> RestTransport::WithCredential(const Request& request, const Once& once) {
  absl::StatusOr<Response> response;
  absl::StatusOr<Shown> shown = Show();
  if (shown.ok()) response = once(*shown);
  if (shown.ok() && response.ok() && response->status == 401 && access_.credentials != nullptr) {
    const Credential refused = shown->credential;
    shown = ShowInPlaceOf(refused);
    if (shown.ok() && !SameCredential(shown->credential, refused)) response = once(*shown);
  }
  const absl::Status& status = shown.ok() ? response.status() : shown.status();
  if (status.ok()) return response;
  return absl::Status(status.code(), request.method + " " + request.path + " at " + host_ + ": " +
                                         std::string(status.message()));
}

absl::StatusOr<Response> RestTransport::Send(const Request& request, base::Duration timeout,
                                             std::stop_token stop) {
  const base::Instant deadline = After(timeout);
  return WithCredential(
      request, [&](const Shown& shown) { return SendOnce(request, shown, deadline, stop); });
}

absl::StatusOr<Response> RestTransport::Stream(const Request& request, base::Duration idle,
                                               base::Duration limit, const OnLine& on_line,
                                               std::stop_token stop) {
  const base::Instant deadline = After(limit);
  return WithCredential(request, [&](const Shown& shown) {
    return StreamOnce(request, shown, idle, deadline, on_line, stop);
  });
}

// cpprestsdk looks the host up as it stands in the URI, where brackets are no part of an address.
// The port makes it unambiguous.
web::uri WithoutBrackets(const web::uri& server, const std::string& address) {
  web::uri_builder builder(server);
  builder.set_host(address);
  if (server.port() <= 0) builder.set_port(server.scheme() == "https" ? kHttpsPort : 80);
  return builder.to_uri();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeRestTransport(ClusterAccess access) {
  HETERO_RETURN_IF_ERROR(StartNetworkThread());
  try {
    web::uri server(access.server);
    if ((server.scheme() != "https" && server.scheme() != "http") || server.host().empty()) {
      return absl::InvalidArgumentError("server \"" + access.server + "\": give https://host:port");
    }
    if (server.host().front() == '[') {
      const std::string address = server.host().substr(1, server.host().size() - 2);
      if (!IsAddress(address)) {
        return absl::InvalidArgumentError("server \"" + access.server + "\": " + address +
                                          " is no IPv6 address");
      }
      server = WithoutBrackets(server, address);
    }
    return std::make_unique<RestTransport>(std::move(access), std::move(server));
  } catch (const web::uri_exception& error) {
    return absl::InvalidArgumentError("server \"" + access.server + "\": " + error.what());
  }
}

}  // namespace hetero::kube
