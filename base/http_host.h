#pragma once

#include <string>

#include "base/listen_socket.h"

// Against DNS rebinding: a page of somebody else's, in the browser of one who can reach this port,
// lets its own name lead here and then reads as if it were of here. What it cannot change is that
// name, which the browser sends as Host.
namespace hetero::metrics {

// Where a request says that it was sent to, and from where it came.
struct HttpOrigin {
  std::string host;           // as sent, with or without a port; empty: not told
  std::string forwarded_uri;  // X-Forwarded-Uri, which the proxy of a Kubernetes API server sets
  bool from_this_machine = false;
};

// Whether nobody's page elsewhere can have that name:
// - localhost and names below it, and every address, in figures: the browser was sent there;
// - names that no public name server leads to: of one word, or of a cluster (.svc,
//   .svc.cluster.local);
// - any name, in a request that the proxy of an API server has passed on: that keeps the name under
//   which it was itself asked. From this machine (a port-forward, a local job) no proxy comes.
bool IsKnownHost(const HttpOrigin& origin);

// Whether the other end of a connection is an address of the loopback interface.
bool IsFromThisMachine(const base::Socket& connection);

}  // namespace hetero::metrics
