#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

// Which programs may work together. Head, CPU workers and trainers of a job must understand the
// same messages and make the same batch of the same ticket: two that do not would mix in silence,
// and no digest would tell. Both ends of each connection check it: the head when a member says
// Hello, the member when the head says Welcome, CPU worker and trainer when their stream begins.
namespace hetero::handshake {

// What a program was built from. Empty texts: it does not tell.
struct Build {
  std::string version;   // of the source tree: "0.1.0"
  std::string commit;    // "ce2b346"; "unknown" like empty
  std::string protocol;  // see Protocol(); releases up to 0.1.0 tell none
};

// This program's own; never destroyed.
const Build& ThisBuild();

// "1-9f3c21aa": the number of what a ticket means, raised by hand with any change to which samples,
// pixels or checksums answer one, and a checksum of the messages of membership.proto and
// feed.proto, which changes by itself.
const std::string& Protocol();

// "build 0.1.0+ce2b346 (protocol 1-9f3c21aa)".
std::string Describe(const Build& build);

// Same version and same protocol: OK, whatever the commits; a rebuilt image must not stop a
// developer's job, and the report names the commits. Otherwise kFailedPrecondition names both
// builds by their names in a sentence ("cpu-0", "the head") and the remedy.
absl::Status CheckPeers(const std::string& who, const Build& build, const std::string& other,
                        const Build& others_build);

// As gRPC metadata under kMetadataKey; what it does not read is empty.
inline constexpr char kMetadataKey[] = "hetero-build";
std::string ToMetadata(const Build& build);
Build FromMetadata(std::string_view text);

}  // namespace hetero::handshake
