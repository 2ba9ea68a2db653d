#pragma once

namespace hetero::head {

// A deleted pod sends no RST: both ends ping, and drop a connection that does not answer.
inline constexpr int kKeepaliveTimeMs = 1000;
inline constexpr int kKeepaliveTimeoutMs = 3000;

// Who connects and then says nothing is let go after this.
inline constexpr int kHandshakeTimeoutMs = 10'000;

}  // namespace hetero::head
