#pragma once

#include <string>

#include "absl/status/status.h"

namespace grpc {
class ServerBuilder;
}  // namespace grpc

namespace hetero::head {

// "unix:/path": a socket file of this machine.
bool IsUnixAddress(const std::string& address);

// What gRPC would get wrong by itself: a socket path that is too long, or one that a living process
// serves (gRPC would take the file away from it). A socket file that nobody serves is fine.
absl::Status CheckListenAddress(const std::string& address);

// kUnavailable for an address that could not be bound, with the usual causes.
absl::Status CannotListen(const std::string& address);

// `address` with the port that was bound.
std::string BoundAddress(const std::string& address, int port);

// A taken port is an error, and a peer that vanished without a word is noticed within 4 s.
void ConfigureServer(grpc::ServerBuilder& builder);

}  // namespace hetero::head
