#include "runtime/agent/master_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::agent {
namespace {

constexpr char kKey[] = "script/master";

// "host port": hosts may hold colons.
absl::StatusOr<MasterAddress> Parse(const std::string& text) {
  const size_t space = text.rfind(' ');
  MasterAddress address;
  const char* const end = text.data() + text.size();
  if (space != std::string::npos) {
    address.host = text.substr(0, space);
    const auto parsed = std::from_chars(text.data() + space + 1, end, address.port);
    if (parsed.ec == std::errc() && parsed.ptr == end) return address;
  }
  return absl::InternalError(
      absl::StrCat("rank 0 told \"", text, "\" as the address of its script"));
}

}  // namespace

absl::StatusOr<int32_t> PickPort() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int reuse = 1;
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_ANY)}};
  socklen_t size = sizeof address;
  const bool bound =
      listener >= 0 && setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) == 0 &&
      bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int error = errno;
  if (listener >= 0) close(listener);
  if (bound) return ntohs(address.sin_port);
  return absl::ResourceExhaustedError(
      absl::StrCat("no free port for the script of rank 0: ", strerror(error)));
}

absl::StatusOr<MasterAddress> AgreeMaster(int32_t rank, const MasterAddress& own,
                                          head::RendezvousClient& store, base::Duration patience) {
  if (rank != 0) {
    HETERO_ASSIGN_OR_RETURN(const std::string text, store.Get(kKey, patience));
    return Parse(text);
  }
  HETERO_RETURN_IF_ERROR(store.Set(kKey, absl::StrCat(own.host, " ", own.port)));
  return own;
}

}  // namespace hetero::agent
