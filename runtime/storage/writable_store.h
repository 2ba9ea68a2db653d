#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/storage/store.h"

namespace hetero::storage {

// One object on its way into a store. Of one thread at a time.
class ObjectWriter {
 public:
  // Without a Close() that succeeded nothing is left, neither the object nor pieces of it.
  virtual ~ObjectWriter() = default;

  // After an error nothing more can be appended, and Close() gives the same error.
  virtual absl::Status Append(absl::Span<const uint8_t> bytes) = 0;
  // Only now there is an object of this name, whole; one that was there before is replaced. Once.
  virtual absl::StatusOr<Object> Close() = 0;
};

// A store that can be written to. Thread-safe, as the other is. A name's folders need not be there.
class WritableStore : public Store {
 public:
  // For objects of any size: the bytes leave while they come.
  virtual absl::StatusOr<std::unique_ptr<ObjectWriter>> Create(std::string_view name) = 0;

  // Both write a small object whole (kMostConditionalBytes), and of several writers that try the
  // same one wins. Where replies get lost the content tells whose it is, so it is to be the
  // writer's own: two must not write the same bytes. kAlreadyExists: there is one of this name.
  virtual absl::StatusOr<Object> WriteIfAbsent(std::string_view name, std::string_view bytes) = 0;
  // Replaces `old`. kFailedPrecondition: there is another one now, or none.
  virtual absl::StatusOr<Object> WriteIfMatch(const Object& old, std::string_view bytes) = 0;

  // No error where there is none.
  virtual absl::Status Delete(std::string_view name) = 0;
};

inline constexpr size_t kMostConditionalBytes = 1 << 20;

}  // namespace hetero::storage
