#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/head/rendezvous_client.h"

namespace hetero::agent {

// Where rank 0's script listens for the others (MASTER_ADDR, MASTER_PORT).
struct MasterAddress {
  std::string host;
  int32_t port = 0;
};

// A port that is free on all addresses now. It is picked, not held: a script that finds it taken
// fails to bind, and the next generation has another. kResourceExhausted when none is.
absl::StatusOr<int32_t> PickPort();

// The same in all ranks of `store`'s generation: rank 0 tells its `own`, the others wait for it
// until `patience`. Called again in one generation rank 0 has to tell the same: what has failed may
// have been heard.
absl::StatusOr<MasterAddress> AgreeMaster(int32_t rank, const MasterAddress& own,
                                          head::RendezvousClient& store, base::Duration patience);

}  // namespace hetero::agent
