#include "runtime/handshake/build.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/crc32c.h"
#include "base/version.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "hetero/v1/feed.pb.h"
#include "hetero/v1/membership.pb.h"

namespace hetero::handshake {
namespace {

// Of what a ticket means. The golden digests of tests/golden change with it.
constexpr int kTicketMeaning = 1;

uint32_t ChecksumOf(const google::protobuf::FileDescriptor& file, uint32_t crc) {
  google::protobuf::FileDescriptorProto messages;
  file.CopyTo(&messages);
  const std::string bytes = messages.SerializeAsString();
  return base::Crc32c(bytes.data(), bytes.size(), crc);
}

}  // namespace

const std::string& Protocol() {
  static const auto* const protocol = new std::string([] {
    uint32_t crc = ChecksumOf(*v1::Hello::descriptor()->file(), 0);
    crc = ChecksumOf(*v1::Ticket::descriptor()->file(), crc);
    return absl::StrFormat("%d-%08x", kTicketMeaning, crc);
  }());
  return *protocol;
}

const Build& ThisBuild() {
  static const auto* const build =
      new Build{.version = base::kVersion, .commit = base::Commit(), .protocol = Protocol()};
  return *build;
}

std::string Describe(const Build& build) {
  if (build.version.empty()) return "a build that does not tell its version (0.1.0 or older)";
  return absl::StrCat("build ", base::FullVersion(build.version, build.commit), " (",
                      build.protocol.empty() ? "tells no protocol" : "protocol " + build.protocol,
                      ")");
}

absl::Status CheckPeers(const std::string& who, const Build& build, const std::string& other,
                        const Build& others_build) {
  const bool same = !build.version.empty() && build.version == others_build.version &&
                    !build.protocol.empty() && build.protocol == others_build.protocol;
  if (same) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(who, " is of ", Describe(build), ", ", other, " of ", Describe(others_build),
                   ": give every role of the job an image of the same build"));
}

std::string ToMetadata(const Build& build) {
  return absl::StrCat(build.version, " ", build.commit, " ", build.protocol);
}

Build FromMetadata(std::string_view text) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(text.data(), text.size()), ' ');
  if (parts.size() != 3) return {};
  return {.version = parts[0], .commit = parts[1], .protocol = parts[2]};
}

}  // namespace hetero::handshake
