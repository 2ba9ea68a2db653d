#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hetero::testing {

// What a client asked of the API server.
struct ProxiedRequest {
  std::string method;
  std::string path;  // with its query
  std::string body;
  std::string content_type;
  bool write() const { return method != "GET" && method != "HEAD"; }
  bool watch() const { return path.find("watch=true") != std::string::npos; }
};

// What happens to it.
struct ProxyAction {
  enum class Kind {
    kForward,
    kReply,      // `status` and `body` from the proxy; the server never sees the request
    kLose,       // the connection is cut; the server never sees the request
    kLoseReply,  // the server carries it out; the connection is cut instead of the reply
  };
  Kind kind = Kind::kForward;
  int status = 0;
  std::string extra_headers;  // "Retry-After: 1\r\n"
  std::string body;
};

struct RecordedWrite {
  ProxiedRequest request;
  int status = 0;  // of the server's reply; 0: none was seen
  std::chrono::steady_clock::time_point time;
};

// A man in the middle before the API server, speaking its own certificate: one operator's view of a
// bad network. One connection carries one request. Thread-safe.
class ApiProxy {
 public:
  struct Options {
    std::string upstream_host;
    int upstream_port = 0;
    std::string
        certificate_file;  // the API server's own, so that the cluster's CA vouches for the proxy
    std::string key_file;
  };
  explicit ApiProxy(const Options& options);
  ~ApiProxy();

  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }

  // Decides each request's fate, called before anything is forwarded; null: forward all. Called
  // from many threads.
  using Rule = std::function<ProxyAction(const ProxiedRequest& request)>;
  void SetRule(Rule rule);
  // Called after a write was carried out and before its reply is relayed.
  using AfterWrite = std::function<void(const ProxiedRequest& request, int status)>;
  void SetAfterWrite(AfterWrite after);

  // Ends every watch that is open now, as a broken network would. Returns how many.
  int CutWatches();

  std::vector<RecordedWrite> writes() const;
  void ForgetWrites();
  int64_t requests() const { return requests_; }

 private:
  struct Connection;
  void Accept();
  void Serve(Connection& connection);
  void Relay(Connection& connection, const ProxiedRequest& request, const std::string& raw);
  void Reap(bool all);

  Options options_;
  int listener_ = -1;
  int port_ = 0;
  void* server_context_ = nullptr;
  void* client_context_ = nullptr;
  std::atomic<bool> stopping_ = false;
  std::atomic<int64_t> requests_ = 0;
  mutable std::mutex mutex_;  // guards all below
  Rule rule_;
  AfterWrite after_write_;
  std::vector<RecordedWrite> writes_;
  std::list<std::shared_ptr<Connection>> connections_;
  std::thread acceptor_;
};

}  // namespace hetero::testing
