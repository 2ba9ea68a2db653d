#include "base/http_host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "absl/strings/ascii.h"

namespace hetero::metrics {
namespace {

// Without the port; an address of IPv6 without its brackets.
std::string NameOf(std::string_view host) {
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    return end == std::string_view::npos ? "" : std::string(host.substr(1, end - 1));
  }
  return absl::AsciiStrToLower(std::string(host.substr(0, host.find(':'))));
}

bool IsAddress(const std::string& name) {
  in_addr four{};
  in6_addr six{};
  return inet_pton(AF_INET, name.c_str(), &four) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &six) == 1;
}

bool IsName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_';
  });
}

}  // namespace

bool IsKnownHost(const HttpOrigin& origin) {
  const std::string name = NameOf(origin.host);
  if (IsAddress(name)) return true;
  if (!IsName(name)) return false;
  if (name == "localhost" || name.ends_with(".localhost")) return true;
  if (name.find('.') == std::string::npos || name.ends_with(".svc") ||
      name.ends_with(".svc.cluster.local")) {
    return true;
  }
  return !origin.from_this_machine && origin.forwarded_uri.starts_with("/api/v1/namespaces/") &&
         origin.forwarded_uri.find("/proxy") != std::string::npos;
}

bool IsFromThisMachine(const base::Socket& connection) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (getpeername(connection.fd(), reinterpret_cast<sockaddr*>(&peer), &size) != 0) return false;
  if (peer.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(peer);
    return (ntohl(four.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  }
  if (peer.ss_family != AF_INET6) return false;
  const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&six)) return six.s6_addr[12] == IN_LOOPBACKNET;
  return IN6_IS_ADDR_LOOPBACK(&six);
}

}  // namespace hetero::metrics
