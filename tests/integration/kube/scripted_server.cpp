#include "tests/integration/kube/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/unit/base/test_certificates.h"

namespace hetero::kube {
namespace {

template <typename T, auto kFree>
struct Free {
  void operator()(T* object) const { kFree(object); }
};
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX, SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Free<SSL, SSL_free>>;
using Memory = std::unique_ptr<BIO, Free<BIO, BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Free<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, EVP_PKEY_free>>;

void Check(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string("scripted server: ") + what);
}

Certificate ParseCertificate(const std::string& pem) {
  const Memory in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return Certificate(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
}

// Of the names that OpenSSL reads from this list only the first one has to be a URI.
base::TestAuthority::Leaf IssueForLoopback(const base::TestAuthority& authority) {
  return authority.IssueForUri("https://localhost,DNS:localhost,IP:127.0.0.1,IP:::1");
}

Context MakeContext(const base::TestAuthority& authority, const ScriptedServer::Options& options) {
  Context context(SSL_CTX_new(TLS_server_method()));
  const base::TestAuthority::Leaf leaf = IssueForLoopback(authority);
  const Certificate certificate = ParseCertificate(leaf.certificate_pem);
  const Memory in(BIO_new_mem_buf(leaf.key_pem.data(), static_cast<int>(leaf.key_pem.size())));
  const Key key(PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr));
  Check(SSL_CTX_use_certificate(context.get(), certificate.get()) == 1, "certificate");
  Check(SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1, "key");
  if (options.only_tls_1_1) {
    SSL_CTX_set_security_level(context.get(), 0);
    SSL_CTX_set_min_proto_version(context.get(), TLS1_1_VERSION);
    SSL_CTX_set_max_proto_version(context.get(), TLS1_1_VERSION);
  }
  const Certificate ca = ParseCertificate(authority.certificate_pem());
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), ca.get());
  if (options.require_client_certificate) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

// A free port of an IPv4 address, or of ::1; negative: there is none.
int Bind(bool ipv6, const std::string& host = "127.0.0.1") {
  sockaddr_in v4{.sin_family = AF_INET};
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) != 1) return -1;
  const int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
  const auto* address = ipv6 ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
  if (fd < 0 || bind(fd, address, ipv6 ? sizeof v6 : sizeof v4) == 0) return fd;
  close(fd);
  return -1;
}

int PortOf(int listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  // At the same place for both families.
  return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// A connection's bytes, with or without TLS.
class Socket : public ScriptedServer::Connection {
 public:
  Socket(int fd, SSL_CTX* context) : fd_(fd) {
    if (context == nullptr) return;
    session_.reset(SSL_new(context));
    SSL_set_fd(session_.get(), fd_);
  }
  ~Socket() override { close(fd_); }

  bool Handshake() {
    if (session_ == nullptr || SSL_accept(session_.get()) == 1) return true;
    // Reads what the client had already sent: a reset would overtake our alert.
    shutdown(fd_, SHUT_WR);
    char ignored[4096];
    while (recv(fd_, ignored, sizeof ignored, 0) > 0) continue;
    return false;
  }

  std::string PeerName() const {
    if (session_ == nullptr) return "";
    const Certificate peer(SSL_get1_peer_certificate(session_.get()));
    if (peer == nullptr) return "";
    char name[256] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(peer.get()), NID_commonName, name, sizeof name);
    return name;
  }

  // False when the peer has gone.
  bool Read(std::string& into) {
    char bytes[16384];
    const ssize_t count = closed_ ? -1
                          : session_ == nullptr
                              ? recv(fd_, bytes, sizeof bytes, 0)
                              : SSL_read(session_.get(), bytes, static_cast<int>(sizeof bytes));
    if (count <= 0) {
      closed_ = true;
      return false;
    }
    into.append(bytes, static_cast<size_t>(count));
    return true;
  }

  void Write(std::string_view bytes) override {
    while (!bytes.empty() && !closed_) {
      const ssize_t count =
          session_ == nullptr
              ? send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL)
              : SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size()));
      if (count <= 0) {
        closed_ = true;
        return;
      }
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }
  void Close() override {
    closed_ = true;
    shutdown(fd_, SHUT_RDWR);
  }
  void AwaitClose() override {
    std::string ignored;
    while (Read(ignored)) ignored.clear();
  }
  bool ClosedWithin(std::chrono::milliseconds time) override {
    pollfd polled{fd_, POLLIN | POLLRDHUP, 0};
    if (closed_) return true;
    if (poll(&polled, 1, static_cast<int>(time.count())) <= 0) return false;
    AwaitClose();
    return true;
  }
  // From another thread.
  void Interrupt() { shutdown(fd_, SHUT_RDWR); }
  bool closed() const { return closed_; }

 private:
  const int fd_;
  Session session_;
  bool closed_ = false;
};

// Fills `buffer` up to the next request and takes that out of it.
bool ReadRequest(Socket& socket, std::string& buffer, ScriptedServer::Request& request) {
  size_t end;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!socket.Read(buffer)) return false;
  }
  const std::string head = buffer.substr(0, end + 2);
  buffer.erase(0, end + 4);
  size_t at = head.find("\r\n");
  const std::string first = head.substr(0, at);
  const size_t space = first.find(' ');
  request.method = first.substr(0, space);
  request.target = first.substr(space + 1, first.rfind(' ') - space - 1);
  while (at + 2 < head.size()) {
    const size_t next = head.find("\r\n", at + 2);
    const std::string line = head.substr(at + 2, next - at - 2);
    const size_t colon = line.find(':');
    const size_t value = line.find_first_not_of(' ', colon + 1);
    request.headers[Lower(line.substr(0, colon))] =
        value == std::string::npos ? "" : line.substr(value);
    at = next;
  }
  const auto length = request.headers.find("content-length");
  const size_t size = length == request.headers.end() ? 0 : std::stoul(length->second);
  while (buffer.size() < size) {
    if (!socket.Read(buffer)) return false;
  }
  request.body = buffer.substr(0, size);
  buffer.erase(0, size);
  return true;
}

}  // namespace

struct ScriptedServer::Impl {
  Impl(Script s, Options o) : script(std::move(s)), options(o) {}

  void Accept();
  void Serve(Socket& socket, int number);

  const Script script;
  const Options options;
  const base::TestAuthority authority;
  int listener = -1;
  int port = 0;
  mutable std::mutex mutex;  // guards what follows
  Context context;           // of connections from now on
  mutable std::condition_variable arrived;
  std::vector<Request> requests;
  std::set<Socket*> sockets;
  std::vector<std::jthread> workers;
  int connections = 0;
  bool stopping = false;
  std::jthread acceptor;
};

void ScriptedServer::Impl::Accept() {
  while (true) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    std::lock_guard lock(mutex);
    if (stopping || fd < 0) {
      if (fd >= 0) close(fd);
      return;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    auto socket = std::make_unique<Socket>(fd, context.get());
    sockets.insert(socket.get());
    workers.emplace_back([this, number = connections++, socket = std::move(socket)] {
      if (socket->Handshake()) Serve(*socket, number);
      std::lock_guard guard(mutex);
      sockets.erase(socket.get());
      socket->Interrupt();
    });
  }
}

void ScriptedServer::Impl::Serve(Socket& socket, int number) {
  std::string buffer;
  while (!socket.closed()) {
    Request request{.connection = number, .client_common_name = socket.PeerName()};
    if (!ReadRequest(socket, buffer, request)) return;
    {
      std::lock_guard lock(mutex);
      requests.push_back(request);
      arrived.notify_all();
    }
    script(request, socket);
  }
}

ScriptedServer::ScriptedServer(Script script, Options options)
    : impl_(std::make_unique<Impl>(std::move(script), options)) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  if (options.tls) impl_->context = MakeContext(impl_->authority, options);
  impl_->listener = Bind(options.ipv6, options.host);
  Check(impl_->listener >= 0, "bind");
  Check(listen(impl_->listener, 128) == 0, "listen");
  impl_->port = PortOf(impl_->listener);
  impl_->acceptor = std::jthread([this] { impl_->Accept(); });
}

ScriptedServer::~ScriptedServer() {
  std::vector<std::jthread> workers;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    for (Socket* socket : impl_->sockets) socket->Interrupt();
    workers.swap(impl_->workers);
  }
  shutdown(impl_->listener, SHUT_RDWR);
  impl_->acceptor.join();
  workers.clear();
  close(impl_->listener);
}

int ScriptedServer::port() const { return impl_->port; }

std::string ScriptedServer::url() const {
  return std::string(impl_->options.tls ? "https://" : "http://") +
         (impl_->options.ipv6 ? "[::1]" : impl_->options.host) + ":" + std::to_string(impl_->port);
}

bool ScriptedServer::HasIpv6() {
  const int fd = Bind(/*ipv6=*/true);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

void ScriptedServer::RenewCertificate() {
  std::lock_guard lock(impl_->mutex);
  impl_->context = MakeContext(impl_->authority, impl_->options);
}

void ScriptedServer::ShowForeignCertificate() {
  std::lock_guard lock(impl_->mutex);
  impl_->context = MakeContext(base::TestAuthority(), impl_->options);
}

std::string ScriptedServer::ca_pem() const { return impl_->authority.certificate_pem(); }

ScriptedServer::Leaf ScriptedServer::IssueClientCertificate(const std::string& common_name) const {
  const base::TestAuthority::Leaf leaf = impl_->authority.Issue(common_name);
  return {leaf.certificate_pem, leaf.key_pem};
}

std::vector<ScriptedServer::Request> ScriptedServer::requests() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->requests;
}

int ScriptedServer::connections() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->connections;
}

bool ScriptedServer::AwaitRequests(size_t count) const {
  std::unique_lock lock(impl_->mutex);
  return impl_->arrived.wait_for(lock, std::chrono::seconds(10),
                                 [&] { return impl_->requests.size() >= count; });
}

void ScriptedServer::Connection::Respond(int status, std::string_view body,
                                         std::string_view headers) {
  std::string reply = "HTTP/1.1 " + std::to_string(status) +
                      " Scripted\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  reply.append(headers).append("\r\n").append(body);
  Write(reply);
}

void ScriptedServer::Connection::BeginChunks(int status) {
  Write("HTTP/1.1 " + std::to_string(status) + " Scripted\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void ScriptedServer::Connection::Chunk(std::string_view bytes) {
  char size[32];
  snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  Write(std::string(size).append(bytes).append("\r\n"));
}

void ScriptedServer::Connection::EndChunks() { Write("0\r\n\r\n"); }

}  // namespace hetero::kube
