#pragma once

#include <string>

namespace hetero::base {

// Of a TCP socket, in digits: "10.0.0.7:7080", "::1:7080". Empty when it has no such address, or
// no other side.
std::string PeerAddress(int socket);
std::string OwnAddress(int socket);

}  // namespace hetero::base
