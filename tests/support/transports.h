#pragma once

#include <string>

#include "runtime/feed/transport/transport.h"
#include "runtime/feed/transport/transports.h"

// For tests that run over every transport:
//   INSTANTIATE_TEST_SUITE_P(Every, X, ::testing::ValuesIn(feed::EveryTransport()), TransportName);
namespace hetero::testing {

constexpr auto TransportName = [](const auto& info) { return std::string(info.param->name); };

// The transport alone, beside the one that is always there.
inline feed::Transports Only(const feed::Transport* transport) {
  const feed::Transport* last = feed::EveryTransport().back();
  if (transport == last) return {last};
  return {transport, last};
}

// Where a worker may listen that the transport is for: any port, else a socket at `path`.
inline std::string ListenAddress(const feed::Transport& transport, const std::string& path) {
  const std::string port = "127.0.0.1:0";
  return transport.fits(port) ? port : "unix:" + path;
}

}  // namespace hetero::testing
