#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/storage/store.h"

namespace hetero::source {

// Reads the whole of an object into `*bytes`, reusing its memory. kDataLoss: it has more than
// `limit` bytes, of which none was read and for which no memory was asked. Any other error is the
// store's.
absl::Status ReadObject(const storage::Store& store, const storage::Object& object, int64_t limit,
                        std::vector<uint8_t>* bytes);

}  // namespace hetero::source
