#include "runtime/feed/pixel_environment.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "runtime/pipeline/decode.h"

namespace hetero::feed {
namespace {

constexpr int64_t kMaxPluginBytes = int64_t{1} << 30;

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> PixelEnvironment(
    const std::vector<api::OperatorSpec>& operators) {
  std::map<std::string, std::string> environment = {{"libjpeg-turbo", pipeline::JpegVersion()},
                                                    {"libpng", pipeline::PngVersion()}};
  for (const api::OperatorSpec& op : operators) {
    if (op.op != api::OperatorKind::kPlugin) continue;
    HETERO_ASSIGN_OR_RETURN(const std::string bytes, base::ReadFile(op.path, kMaxPluginBytes));
    environment[absl::StrCat("plugin ", op.path)] =
        absl::StrCat(bytes.size(), " bytes, CRC32C ",
                     absl::Hex(base::Crc32c(bytes.data(), bytes.size()), absl::kZeroPad8));
  }
  return environment;
}

}  // namespace hetero::feed
