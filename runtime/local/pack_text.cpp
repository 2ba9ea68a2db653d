#include "absl/strings/str_cat.h"
#include "runtime/insight/figures.h"
#include "runtime/local/pack.h"

namespace hetero::local {

std::string ProgressText(const PackProgress& progress, int64_t samples, double seconds) {
  std::string text = absl::StrCat("packed ", insight::CountText(progress.samples), " of ",
                                  insight::CountText(samples), " samples, ", progress.shards,
                                  progress.shards == 1 ? " shard, " : " shards, ",
                                  insight::BytesText(static_cast<double>(progress.bytes)));
  const auto packed = static_cast<double>(progress.samples - progress.kept);
  if (packed <= 0 || seconds <= 1) return text;
  absl::StrAppend(&text, ", ", insight::NumberText(packed / seconds), " samples/s");
  if (progress.samples == samples) return text;
  const double left = seconds / packed * static_cast<double>(samples - progress.samples);
  return absl::StrCat(text, ", ", insight::DurationText(left), " left");
}

}  // namespace hetero::local
