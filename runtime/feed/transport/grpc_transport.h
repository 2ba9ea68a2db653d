#pragma once

#include "runtime/feed/transport/transport.h"

namespace hetero::feed {

// Frames as messages of the stream itself. Always there, so the last of the list.
extern const Transport kGrpcTransport;

}  // namespace hetero::feed
