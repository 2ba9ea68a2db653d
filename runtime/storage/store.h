#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hetero::storage {

// An object of a store, as it was found: which bytes are meant is part of it.
struct Object {
  std::string name;     // relative to the store's root: "train/shard-000000.tar"
  int64_t size = 0;     // bytes
  std::string version;  // ETag, or what else changes with the bytes; empty: the store has none
  bool operator==(const Object&) const = default;
};

// A folder, a bucket below a prefix, or a web server's path. Thread-safe. Calls block; each ends
// within the store's deadlines, retries included. Errors name the object with its URI. In a child
// that fork() made, only a store that OpenStore() gave may be called, and by one thread.
class Store {
 public:
  virtual ~Store() = default;

  // Of the root, for messages: "file:///data", "s3://bucket/prefix".
  virtual const std::string& uri() const = 0;
  // Whether a read waits for a network, so that many at a time are best.
  virtual bool is_remote() const { return false; }

  // All objects whose names begin with `prefix`, sorted by name, byte by byte. None is no error.
  // kUnimplemented where the store cannot list (https).
  virtual absl::StatusOr<std::vector<Object>> List(std::string_view prefix) const = 0;
  // kNotFound: there is none of this name.
  virtual absl::StatusOr<Object> Head(std::string_view name) const = 0;
  // Fills `out` with the object's bytes from `offset` on. kFailedPrecondition: it is another one
  // now, by size or version; kNotFound: it is gone; kOutOfRange: it has not so many bytes. Other
  // errors are the store's. After an error `out` holds anything. For no bytes nothing is asked.
  virtual absl::Status Read(const Object& object, int64_t offset,
                            absl::Span<uint8_t> out) const = 0;
  // Reads the whole of the object that has this name now into `*bytes`, reusing its memory, and
  // says which one it was: by one request where the others need two. kNotFound: there is none;
  // kOutOfRange: it has more than `limit` bytes. After an error `*bytes` holds anything.
  virtual absl::StatusOr<Object> ReadAll(std::string_view name, int64_t limit,
                                         std::vector<uint8_t>* bytes) const;
};

}  // namespace hetero::storage
