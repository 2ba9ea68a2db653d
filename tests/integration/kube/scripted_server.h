#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hetero::kube {

// An HTTPS server on 127.0.0.1, or where it is told, that does to each request exactly what a test
// says, byte for byte. One thread per connection; connections are kept alive as long as the script
// lets them. Its certificate is for "localhost", 127.0.0.1 and ::1, of an authority of its own.
class ScriptedServer {
 public:
  struct Request {
    std::string method;
    std::string target;                          // "/api/v1/pods?limit=5"
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;
    int connection = 0;              // 0, 1, ...: which connection it came on
    std::string client_common_name;  // of the client's certificate
  };

  // The connection a request came on, for the script. Writes after the peer has gone are ignored.
  class Connection {
   public:
    virtual ~Connection() = default;
    // Bytes as they are.
    virtual void Write(std::string_view bytes) = 0;
    // A whole reply with Content-Length. `headers`: "Retry-After: 1\r\n" and so on.
    void Respond(int status, std::string_view body, std::string_view headers = "");
    // A chunked reply piece by piece.
    void BeginChunks(int status = 200);
    void Chunk(std::string_view bytes);
    void EndChunks();
    // A FIN without TLS's goodbye; nothing more is read or written.
    virtual void Close() = 0;
    // Says nothing until the client has gone or the server is being destroyed.
    virtual void AwaitClose() = 0;
    // The client has gone, or the server is being destroyed, within `time`.
    virtual bool ClosedWithin(std::chrono::milliseconds time) = 0;
  };

  struct Options {
    bool tls = true;
    // Clients without a certificate of the server's own authority are refused.
    bool require_client_certificate = false;
    bool only_tls_1_1 = false;
    bool ipv6 = false;               // listens on ::1 instead
    std::string host = "127.0.0.1";  // an IPv4 address of this machine
  };
  // This machine has a ::1.
  static bool HasIpv6();
  // Runs on the connection's thread, for each request; several at once on several connections.
  using Script = std::function<void(const Request& request, Connection& connection)>;

  explicit ScriptedServer(Script script) : ScriptedServer(std::move(script), Options()) {}
  ScriptedServer(Script script, Options options);
  // Ends every connection and waits for their scripts.
  ~ScriptedServer();

  int port() const;
  std::string url() const;  // "https://127.0.0.1:PORT"
  std::string ca_pem() const;
  // Connections from now on are shown another certificate, of the same authority or of one that
  // nobody trusts.
  void RenewCertificate();
  void ShowForeignCertificate();
  struct Leaf {
    std::string certificate_pem;
    std::string key_pem;
  };
  Leaf IssueClientCertificate(const std::string& common_name) const;

  // What has arrived so far.
  std::vector<Request> requests() const;
  int connections() const;
  // Until at least `count` requests have arrived; false after 10 s.
  bool AwaitRequests(size_t count) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hetero::kube
