#include "runtime/storage/store.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::storage {

absl::StatusOr<Object> Store::ReadAll(std::string_view name, int64_t limit,
                                      std::vector<uint8_t>* bytes) const {
  HETERO_ASSIGN_OR_RETURN(Object object, Head(name));
  if (object.size > limit) {
    return absl::OutOfRangeError(absl::StrCat("cannot read ", uri(), "/", object.name, ": it has ",
                                              object.size, " bytes, more than ", limit));
  }
  bytes->resize(static_cast<size_t>(object.size));
  HETERO_RETURN_IF_ERROR(Read(object, 0, absl::MakeSpan(*bytes)));
  return object;
}

}  // namespace hetero::storage
