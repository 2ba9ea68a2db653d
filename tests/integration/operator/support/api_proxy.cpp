#include "tests/integration/operator/support/api_proxy.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

namespace hetero::testing {

namespace {

// One TLS socket; reads and writes block, Cut() from another thread ends both.
class TlsSocket {
 public:
  TlsSocket() = default;
  TlsSocket(int fd, SSL_CTX* context) : fd_(fd), ssl_(SSL_new(context)) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    SSL_set_fd(ssl_, fd);
  }
  ~TlsSocket() {
    if (ssl_ != nullptr) SSL_free(ssl_);
    if (fd_ >= 0) close(fd_);
  }
  TlsSocket(const TlsSocket&) = delete;
  TlsSocket& operator=(const TlsSocket&) = delete;

  bool Accept() { return SSL_accept(ssl_) == 1; }
  bool Connect() { return SSL_connect(ssl_) == 1; }
  // Bytes read; 0 or less at the end.
  int Read(char* buffer, int size) { return SSL_read(ssl_, buffer, size); }
  bool Write(std::string_view bytes) {
    return bytes.empty() || SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())) > 0;
  }
  void CloseNotify() { SSL_shutdown(ssl_); }
  void Cut() { shutdown(fd_, SHUT_RDWR); }

 private:
  int fd_ = -1;
  SSL* ssl_ = nullptr;
};

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(tolower(c));
  return text;
}

// The value of a header in a message's head; empty when absent.
std::string Header(const std::string& head, const std::string& name) {
  const size_t at = Lower(head).find("\r\n" + name + ":");
  if (at == std::string::npos) return "";
  const size_t begin = head.find_first_not_of(' ', at + 3 + name.size());
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

int Dial(const std::string& host, int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

}  // namespace

struct ApiProxy::Connection {
  Connection(int fd, SSL_CTX* context) : client(fd, context) {}
  void Cut() {
    client.Cut();
    std::lock_guard lock(mutex);
    if (upstream) upstream->Cut();
  }

  TlsSocket client;
  std::mutex mutex;  // guards upstream's pointer
  std::unique_ptr<TlsSocket> upstream;
  std::atomic<bool> watch = false;
  std::atomic<bool> done = false;
  std::thread thread;
};

ApiProxy::ApiProxy(const Options& options) : options_(options) {
  SSL_CTX* server = SSL_CTX_new(TLS_server_method());
  server_context_ = server;
  client_context_ = SSL_CTX_new(TLS_client_method());
  if (SSL_CTX_use_certificate_chain_file(server, options.certificate_file.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(server, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    throw std::runtime_error("cannot read " + options.certificate_file);
  }
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 256) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("cannot listen on the loopback");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

ApiProxy::~ApiProxy() {
  stopping_ = true;
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  close(listener_);
  Reap(/*all=*/true);
  SSL_CTX_free(static_cast<SSL_CTX*>(server_context_));
  SSL_CTX_free(static_cast<SSL_CTX*>(client_context_));
}

void ApiProxy::SetRule(Rule rule) {
  std::lock_guard lock(mutex_);
  rule_ = std::move(rule);
}

void ApiProxy::SetAfterWrite(AfterWrite after) {
  std::lock_guard lock(mutex_);
  after_write_ = std::move(after);
}

std::vector<RecordedWrite> ApiProxy::writes() const {
  std::lock_guard lock(mutex_);
  return writes_;
}

void ApiProxy::ForgetWrites() {
  std::lock_guard lock(mutex_);
  writes_.clear();
}

int ApiProxy::CutWatches() {
  std::lock_guard lock(mutex_);
  int cut = 0;
  for (const auto& connection : connections_) {
    if (!connection->watch || connection->done) continue;
    connection->Cut();
    ++cut;
  }
  return cut;
}

void ApiProxy::Accept() {
  while (!stopping_) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    Reap(/*all=*/false);
    auto connection = std::make_shared<Connection>(fd, static_cast<SSL_CTX*>(server_context_));
    std::lock_guard lock(mutex_);
    connections_.push_back(connection);
    connection->thread = std::thread([this, connection] {
      Serve(*connection);
      connection->client.Cut();
      connection->done = true;
    });
  }
}

void ApiProxy::Reap(bool all) {
  std::list<std::shared_ptr<Connection>> ended;
  {
    std::lock_guard lock(mutex_);
    for (auto it = connections_.begin(); it != connections_.end();) {
      if (all) (*it)->Cut();
      if (all || (*it)->done) {
        ended.push_back(*it);
        it = connections_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (const auto& connection : ended) connection->thread.join();
}

void ApiProxy::Serve(Connection& connection) {
  if (!connection.client.Accept()) return;
  std::string head;
  char buffer[16384];
  size_t end;
  while ((end = head.find("\r\n\r\n")) == std::string::npos) {
    const int read = connection.client.Read(buffer, sizeof(buffer));
    if (read <= 0) return;
    head.append(buffer, read);
  }
  ProxiedRequest request;
  request.body = head.substr(end + 4);
  head.resize(end + 2);
  request.method = head.substr(0, head.find(' '));
  const size_t path = request.method.size() + 1;
  request.path = head.substr(path, head.find(' ', path) - path);
  request.content_type = Header(head, "content-type");
  const std::string length = Header(head, "content-length");
  const size_t size = length.empty() ? 0 : std::stoul(length);
  while (request.body.size() < size) {
    const int read = connection.client.Read(buffer, sizeof(buffer));
    if (read <= 0) return;
    request.body.append(buffer, read);
  }
  ++requests_;
  // One request per connection: both sides close after it.
  const size_t first_line = head.find("\r\n") + 2;
  std::string raw = head.substr(0, first_line) + "Connection: close\r\n";
  for (size_t line = first_line; line < head.size();) {
    const size_t next = head.find("\r\n", line) + 2;
    if (Lower(head.substr(line, 11)) != "connection:") raw += head.substr(line, next - line);
    line = next;
  }
  raw += "\r\n" + request.body;
  Relay(connection, request, raw);
}

void ApiProxy::Relay(Connection& connection, const ProxiedRequest& request,
                     const std::string& raw) {
  Rule rule;
  AfterWrite after;
  {
    std::lock_guard lock(mutex_);
    rule = rule_;
    after = after_write_;
  }
  const ProxyAction action = rule ? rule(request) : ProxyAction{};
  if (action.kind == ProxyAction::Kind::kLose) return;
  if (action.kind == ProxyAction::Kind::kReply) {
    connection.client.Write(
        "HTTP/1.1 " + std::to_string(action.status) +
        " From-Proxy\r\nContent-Type: application/json\r\nConnection: close\r\n" +
        action.extra_headers + "Content-Length: " + std::to_string(action.body.size()) +
        "\r\n\r\n" + action.body);
    connection.client.CloseNotify();
    return;
  }
  const int fd = Dial(options_.upstream_host, options_.upstream_port);
  if (fd < 0) return;
  TlsSocket* upstream;
  {
    std::lock_guard lock(connection.mutex);
    connection.upstream = std::make_unique<TlsSocket>(fd, static_cast<SSL_CTX*>(client_context_));
    upstream = connection.upstream.get();
  }
  connection.watch = request.watch();
  if (!upstream->Connect() || !upstream->Write(raw)) return;
  char buffer[16384];
  bool first = true;
  while (true) {
    const int read = upstream->Read(buffer, sizeof(buffer));
    if (read <= 0) break;
    if (first && request.write()) {
      const int status = read > 12 ? std::atoi(buffer + 9) : 0;
      {
        std::lock_guard lock(mutex_);
        writes_.push_back({request, status, std::chrono::steady_clock::now()});
      }
      if (after) after(request, status);
      if (action.kind == ProxyAction::Kind::kLoseReply) return connection.Cut();
    }
    first = false;
    if (!connection.client.Write({buffer, static_cast<size_t>(read)})) return;
  }
  connection.client.CloseNotify();
}

}  // namespace hetero::testing
