#include "runtime/source/read_object.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::source {
namespace {

// A transfer that fails begins once more.
constexpr size_t kAtOnce = size_t{64} << 20;

}  // namespace

absl::Status ReadObject(const storage::Store& store, const storage::Object& object, int64_t limit,
                        std::vector<uint8_t>* bytes) {
  if (object.size > limit) {
    return absl::DataLossError(absl::StrCat(store.uri(), "/", object.name, ": ", object.size,
                                            " bytes; objects of more than ", limit,
                                            " bytes are not read"));
  }
  bytes->resize(static_cast<size_t>(object.size));
  for (size_t at = 0; at < bytes->size(); at += kAtOnce) {
    const size_t size = std::min(kAtOnce, bytes->size() - at);
    HETERO_RETURN_IF_ERROR(
        store.Read(object, static_cast<int64_t>(at), {bytes->data() + at, size}));
  }
  return absl::OkStatus();
}

}  // namespace hetero::source
