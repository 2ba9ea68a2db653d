#pragma once

namespace hetero::head {

// A deleted pod sends no RST: both ends ping, and drop a connection that does not answer.
inline constexpr int kKeepaliveTimeMs = 1000;
inline constexpr int kKeepaliveTimeoutMs = 3000;

}  // namespace hetero::head
