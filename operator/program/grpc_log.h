#pragma once

namespace hetero::program {

// gRPC's own lines go to our log, as debug: a head that cannot be reached is told of by the
// follower, and what gRPC 1.51 calls an error ("No match found for server name") happens on every
// dial of a peer that is known by its URI. Call before anything of gRPC's.
void SendGrpcLogToOurs();

}  // namespace hetero::program
