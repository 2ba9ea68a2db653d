#include "runtime/source/read_object.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace hetero::source {

absl::Status ReadObject(const storage::Store& store, const storage::Object& object, int64_t limit,
                        std::vector<uint8_t>* bytes) {
  if (object.size > limit) {
    return absl::DataLossError(absl::StrCat(store.uri(), "/", object.name, ": ", object.size,
                                            " bytes; objects of more than ", limit,
                                            " bytes are not read"));
  }
  bytes->resize(static_cast<size_t>(object.size));
  return store.Read(object, 0, absl::MakeSpan(*bytes));
}

}  // namespace hetero::source
