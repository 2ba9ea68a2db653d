#pragma once

#include <string>

// What a process says about peers that it does not let in. Thread-safe. However many knock, there
// are few lines (refusal_throttle.h): `before` in a line counts those like it that got none.
namespace hetero::base {

// `who` by what they showed, `why` they were refused.
void ReportRefusedPeer(const std::string& who, const std::string& why);

// From now on everything that gRPC logs goes to our log: TLS handshakes that failed (no
// certificate, plain text, noise) as refused peers, other errors as warnings, the rest at level
// debug. Call early in main().
void SendGrpcLogToOurs();

}  // namespace hetero::base
