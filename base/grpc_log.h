#pragma once

namespace hetero::base {

// What becomes of the lines that gRPC logs itself.
enum class GrpcLines {
  // TLS handshakes that failed (no certificate, plain text, noise) become refused peers
  // (refused_peers.h), other errors warnings, a few of each kind; the rest goes to level debug. For
  // a process with ports, where this is all that tells of those who knock in vain.
  kOfServer,
  // All go to level debug. For a process that only dials: it hears itself why a call failed, and
  // what gRPC 1.51 calls an error ("No match found for server name") happens on every dial of a
  // peer that is known by its URI.
  kOfClient,
};

// From now on everything that gRPC logs goes to our log. Call early in main().
void SendGrpcLogToOurs(GrpcLines lines);

}  // namespace hetero::base
