#include "runtime/source/kept_bytes.h"

#include <unistd.h>

#include "base/status_macros.h"

namespace hetero::source {

KeptBytes::KeptBytes(int64_t most_bytes) : process_(getpid()), most_bytes_(most_bytes) {}

absl::StatusOr<KeptBytes::Bytes> KeptBytes::Find(const std::string& name,
                                                 absl::FunctionRef<absl::StatusOr<Bytes>()> make) {
  if (getpid() != process_) return make();
  {
    base::MutexLock lock(mutex_);
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
      if (kept->name != name) continue;
      kept_.splice(kept_.begin(), kept_, kept);
      return kept_.front().bytes;
    }
  }
  HETERO_ASSIGN_OR_RETURN(const Bytes bytes, make());
  base::MutexLock lock(mutex_);
  Keep(name, bytes);
  return bytes;
}

void KeptBytes::Keep(const std::string& name, const Bytes& bytes) {
  for (const Kept& kept : kept_) {
    if (kept.name == name) return;
  }
  kept_.push_front({name, bytes});
  bytes_ += static_cast<int64_t>(bytes->size());
  while (bytes_ > most_bytes_) {
    bytes_ -= static_cast<int64_t>(kept_.back().bytes->size());
    kept_.pop_back();
  }
}

}  // namespace hetero::source
