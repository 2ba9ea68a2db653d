#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "api/enums.h"
#include "runtime/local/pack.h"
#include "runtime/local/pack_shard.h"

namespace hetero::local {

std::unique_ptr<PackFormat> PackFormatOf(const PackOptions& options) {
  if (options.format == api::DatasetFormat::kWebDataset) return PackWebDataset(options.label);
  if (options.format != api::DatasetFormat::kMds) return nullptr;
  return PackMds(options.label, options.shard_bytes);
}

absl::Status CheckPackOptions(const PackOptions& options) {
  if (!options.source.fields.mask.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--mask ", options.source.fields.mask,
                     ": masks are not packed; leave it out to pack pictures and labels, or write "
                     "shards with the format's own library"));
  }
  const std::string name(api::NameOf(options.format));
  const std::unique_ptr<PackFormat> format = PackFormatOf(options);
  if (format == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("--format: nothing is packed as ", name, "; give WebDataset or MDS"));
  }
  if (options.shard_bytes <= format->most_shard_bytes()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--shard-size: ", options.shard_bytes, " bytes, and a shard of ", name, " has ",
                   format->most_shard_bytes(), " at most; give less, as 256MB"));
}

}  // namespace hetero::local
