#pragma once

#include "runtime/feed/transport/transport.h"

namespace hetero::feed {

// For a worker that is reached by TCP: frames go over a connection beside the stream, past gRPC,
// from which batches are read straight into their memory (data_socket.h). Until it is there, and
// where it cannot be made, they go by the transports that follow in the list.
extern const Transport kDataTransport;

}  // namespace hetero::feed
