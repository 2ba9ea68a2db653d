#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace hetero::feed {

// The TCP port of a worker's feed, which gRPC shares with the transports that have connections of
// their own: what one begins with says whose it is. Nothing is read from them here.
class FeedListener {
 public:
  static constexpr size_t kPreambleBytes = 8;
  // Connections that have not said a word, at a time: the oldest is given up when there are more.
  static constexpr size_t kMostWaiting = 1024;

  // "10.0.0.7:7080", "[::]:7080", "localhost:0"; "0.0.0.0" means every address, of IPv6 too where
  // there is one. kInvalidArgument: no such address; kUnavailable: another process has the port, or
  // this host does not have the address.
  static absl::StatusOr<std::unique_ptr<FeedListener>> Bind(const std::string& address,
                                                            base::Clock& clock,
                                                            size_t most_waiting = kMostWaiting);
  ~FeedListener();  // stops; connections that have not begun are closed

  int port() const { return port_; }
  struct Route {
    std::string_view preamble;  // kPreambleBytes that connections of this one begin with
    std::function<void(int connection)> take;
  };
  // On the listener's thread; they take the connection over.
  struct Callbacks {
    std::function<void(int listener, int connection)> to_grpc;  // all that no route is for
    std::vector<Route> routes;
  };
  void Start(Callbacks callbacks);  // once

 private:
  struct Waiting;

  FeedListener(int fd, int port, base::Clock& clock, size_t most_waiting)
      : fd_(fd), port_(port), clock_(clock), most_waiting_(most_waiting) {}
  void Run(const std::stop_token& stop);
  void Accept(std::vector<Waiting>* waiting, const std::stop_token& stop);
  void EvictOldest(std::vector<Waiting>* waiting);
  // Whether it was handed on or closed.
  bool Sort(const Waiting& connection) const;

  const int fd_;
  const int port_;
  base::Clock& clock_;
  const size_t most_waiting_;
  Callbacks callbacks_;
  // On the listener's thread.
  int64_t evicted_ = 0;  // since the last warning
  base::Instant next_warning_;
  std::jthread thread_;
};

}  // namespace hetero::feed
