#include "runtime/feed/thrown.h"

#include <exception>
#include <new>

#include "absl/strings/str_cat.h"

namespace hetero::feed {

absl::Status StatusOfThrown() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("there is no memory for it in this process");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("an exception was thrown: ", error.what()));
  } catch (...) {
    return absl::InternalError("something was thrown that is no std::exception");
  }
}

}  // namespace hetero::feed
