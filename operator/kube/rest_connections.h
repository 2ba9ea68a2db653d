#pragma once

#include <cpprest/http_client.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "operator/kube/cluster_access.h"
#include "operator/kube/tls_context.h"

// For rest_transport.cpp only: nothing else includes cpprestsdk.
namespace hetero::kube {

// cpprestsdk's timeout measures silence, not time. Ours do the work; these only end what nobody
// waits for any more.
inline constexpr auto kSilentRequest = std::chrono::minutes(5);
inline constexpr auto kSilentStream = std::chrono::hours(25);
inline constexpr auto kLastRequests = std::chrono::seconds(2);

// Something our side lacks for a connection, on its way through cpprestsdk.
struct TlsSettingsError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline absl::Status OfTlsError(const web::http::http_exception& error, const TlsSettings& tls) {
  const auto code = static_cast<unsigned int>(error.error_code().value());
  const std::string reason = TlsErrorText(code);
  if (IsCertificateRefusal(code)) {
    return absl::UnauthenticatedError("the server's certificate is refused: " + tls.last_refusal());
  }
  if (IsCredentialAlert(code)) {
    return absl::UnauthenticatedError("the server refuses our credentials: " + reason);
  }
  return absl::UnavailableError(std::string(error.what()) + (reason.empty() ? "" : ": " + reason));
}

// Called in a catch block.
inline absl::Status StatusOfException(const TlsSettings& tls) {
  try {
    throw;
  } catch (const TlsSettingsError& error) {
    return absl::UnauthenticatedError(error.what());
  } catch (const web::http::http_exception& error) {
    const int code = error.error_code().value();
    if (code == static_cast<int>(std::errc::timed_out)) {
      return absl::DeadlineExceededError("silence");
    }
    if (code == static_cast<int>(std::errc::operation_canceled)) {
      return absl::CancelledError("stopped");
    }
    return OfTlsError(error, tls);
  } catch (const web::uri_exception& error) {
    return absl::InvalidArgumentError(error.what());
  } catch (const std::exception& error) {
    return absl::UnavailableError(error.what());
  } catch (...) {
    return absl::UnavailableError("unknown error");
  }
}

inline const std::string& NameOf(const ClusterAccess& access, const web::uri& server) {
  return access.tls_server_name.empty() ? server.host() : access.tls_server_name;
}

// A peer that vanished says nothing: the kernel asks it after 15 s of silence, and gives a
// connection up whose peer has not answered for 30 s.
inline void NoticeVanishedPeer(int socket) {
  const auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

// cpprestsdk shows a socket before each request, and the first time before it opens it, so it is
// opened here. A name may stand for addresses of either family, which cpprestsdk tries in turn:
// until their second request those connections are watched over by the deadlines of requests and
// the silence of watches alone.
inline void PrepareSocket(boost::asio::ip::tcp::socket& socket, const std::string& host) {
  if (!socket.is_open()) {
    if (!IsAddress(host)) return;
    const bool v6 = host.find(':') != std::string::npos;
    boost::system::error_code error;
    socket.open(v6 ? boost::asio::ip::tcp::v6() : boost::asio::ip::tcp::v4(), error);
    if (error) return;  // cpprestsdk runs into it too, and tells
  }
  NoticeVanishedPeer(socket.native_handle());
}

// Counts requests that cpprestsdk still works on, whether or not somebody waits for them.
class InFlight {
 public:
  void Begin() {
    const base::MutexLock lock(mutex_);
    ++count_;
  }
  void End() {
    const base::MutexLock lock(mutex_);
    if (--count_ == 0) none_.NotifyAll();
  }
  void AwaitNone() {
    const base::MutexLock lock(mutex_);
    none_.WaitUntil(mutex_, base::Clock::Real().Now() + kLastRequests, {},
                    [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ == 0; });
  }

 private:
  base::Mutex mutex_;
  base::CondVar none_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The connections made with one client certificate. Requests and streams have pools of their own.
struct Connections {
  Connections(const ClusterAccess& access, const web::uri& server, const Credential& credential)
      : tls(std::make_shared<TlsSettings>(access.ca_pem, credential.certificate_pem,
                                          credential.key_pem, NameOf(access, server))),
        requests(server, Config(access, server, kSilentRequest)),
        streams(server, Config(access, server, kSilentStream)) {}

  template <typename Silence>
  web::http::client::http_client_config Config(const ClusterAccess& access, const web::uri& server,
                                               Silence silence) const {
    web::http::client::http_client_config config;
    config.set_timeout(silence);
    config.set_max_redirects(0);  // they would carry our token elsewhere
    config.set_validate_certificates(!access.insecure_skip_tls_verify);
    config.set_tlsext_sni_enabled(!IsAddress(NameOf(access, server)));
    config.set_nativehandle_options([host = server.host(), tls = server.scheme() == "https"](
                                        web::http::client::native_handle handle) {
      using Socket = boost::asio::ip::tcp::socket;
      PrepareSocket(tls ? static_cast<boost::asio::ssl::stream<Socket&>*>(handle)->next_layer()
                        : *static_cast<Socket*>(handle),
                    host);
    });
    config.set_ssl_context_callback([tls = tls](boost::asio::ssl::context& context) {
      // Replaces the one made for this connection alone, which would cost 0.2 MB each.
      absl::StatusOr<SSL_CTX*> shared = tls->SharedContext();
      if (!shared.ok()) throw TlsSettingsError(std::string(shared.status().message()));
      context = boost::asio::ssl::context(*shared);
    });
    return config;
  }

  const std::shared_ptr<TlsSettings> tls;
  web::http::client::http_client requests;
  web::http::client::http_client streams;
};

}  // namespace hetero::kube
