#pragma once

#include "runtime/feed/transport/transport.h"

namespace hetero::feed {

// For a worker on the trainer's host, which is reached by a unix socket: frames go over the stream
// and name batches that lie in memory of both (shared_region.h). Small batches, and those for which
// there is no room, go with their frames.
extern const Transport kSharedMemoryTransport;

}  // namespace hetero::feed
