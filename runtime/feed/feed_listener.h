#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"

namespace hetero::feed {

// The TCP port of a worker's feed, which gRPC and data connections share: whatever begins with
// kDataMagic is a data connection, everything else is gRPC's. Nothing is read from them here.
class FeedListener {
 public:
  // "10.0.0.7:7080", "[::]:7080", "localhost:0"; "0.0.0.0" means every address, of IPv6 too where
  // there is one. kInvalidArgument: no such address; kUnavailable: another process has the port, or
  // this host does not have the address.
  static absl::StatusOr<std::unique_ptr<FeedListener>> Bind(const std::string& address);
  ~FeedListener();  // stops; connections that have not begun are closed

  int port() const { return port_; }
  struct Callbacks {  // on the listener's thread; they take the connection over
    std::function<void(int listener, int connection)> to_grpc;
    std::function<void(int connection)> to_data;
  };
  void Start(Callbacks callbacks);  // once

 private:
  struct Waiting;

  FeedListener(int fd, int port) : fd_(fd), port_(port) {}
  void Run(const std::stop_token& stop);
  void Accept(std::vector<Waiting>* waiting);
  // Whether it was handed on or closed.
  bool Sort(const Waiting& connection) const;

  const int fd_;
  const int port_;
  Callbacks callbacks_;
  std::jthread thread_;
};

}  // namespace hetero::feed
