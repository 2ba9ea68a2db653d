#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <stop_token>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/listen_socket.h"

namespace hetero::metrics {

// What the callers of a port may cost, each and together.
struct HttpLimits {
  size_t connections = 64;  // above it the one that has waited longest goes
  size_t request_bytes = size_t{16} << 10;
  base::Duration to_ask = std::chrono::seconds(5);   // from connecting to the end of the request
  base::Duration in_all = std::chrono::seconds(30);  // to the last byte of the answer
};

// The connections of a small HTTP port, one request each, as bytes: nobody waits for a caller that
// sends or reads slowly, and a caller that asks at once is answered however many others keep their
// connections open and say nothing. Not thread-safe.
class HttpConnections {
 public:
  struct Reply {
    std::string bytes;  // the answer with its head
    // In the place of an answer: gets the connection, which is none of this port's any more.
    std::function<void(base::Socket)> take_over;
  };
  // A request up to its empty line, and where it came on.
  using Answer = std::function<Reply(const std::string& request, const base::Socket& caller)>;

  HttpConnections(base::Socket listener, HttpLimits limits, Answer answer)
      : listener_(std::move(listener)), limits_(limits), answer_(std::move(answer)) {}

  // Blocks until stop; then all connections are closed. Answers are asked for on this thread.
  void Run(std::stop_token stop);

 private:
  struct Connection {
    base::Socket socket;
    base::Instant ends;  // when it is closed whatever it does
    base::Instant last;  // of `in_all`
    std::string request;
    std::string answer;  // empty: the request is not complete
    size_t written = 0;
    bool all_said = false;  // only the caller's goodbye is waited for
  };
  using Connections = std::list<Connection>;

  void AwaitEvents(int wake, base::Instant now);
  void AcceptAll(base::Instant now);
  void MakeRoom();
  // These say whether the connection goes on.
  bool Advance(Connection& connection, base::Instant now);
  bool Read(Connection& connection, base::Instant now);
  bool Write(Connection& connection, base::Instant now);

  base::Socket listener_;
  const HttpLimits limits_;
  const Answer answer_;
  Connections connections_;    // by age
  base::Instant accept_at_{};  // not before, after the process had no file left for a connection
};

}  // namespace hetero::metrics
