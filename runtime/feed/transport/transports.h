#pragma once

#include <vector>

namespace hetero::feed {

struct Transport;  // transport.h

// In order of preference. The last one takes frames at any time, and so what no other takes.
using Transports = std::vector<const Transport*>;

// All that there are. A new one is an entry of this list; CONTRIBUTING.md says what else it takes.
const Transports& EveryTransport();

}  // namespace hetero::feed
