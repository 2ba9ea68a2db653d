#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/source/decompress.h"
#include "runtime/source/kept_bytes.h"
#include "runtime/storage/store.h"

namespace hetero::source {

// Bytes [begin, begin + bytes) of an object, which stand for `unpacked` bytes.
struct PackedPiece {
  int64_t begin = 0;
  int64_t bytes = 0;
  int64_t unpacked = 0;
  Compression compression = Compression::kNone;
};

// The packed pieces of one object, whose unpacked bytes have addresses of their own: one piece
// behind the other, beyond all bytes of the object itself.
class PackedPieces {
 public:
  static constexpr int64_t kBase = int64_t{1} << 48;

  // The address of its first byte, once it is unpacked.
  int64_t Add(const PackedPiece& piece);
  bool empty() const { return pieces_.empty(); }

  struct Place {
    size_t number = 0;
    PackedPiece piece;
    int64_t offset = 0;  // in what it unpacks to
  };
  // Where the bytes [address, address + size) are, which lie in one piece. kOutOfRange: in none.
  absl::StatusOr<Place> Find(int64_t address, size_t size) const;

 private:
  std::vector<PackedPiece> pieces_;
  std::vector<int64_t> begins_;  // of each, behind kBase
  int64_t size_ = 0;
};

// A store whose objects are read as they are, and behind that at the addresses of their packed
// pieces as if these were not packed. A piece is read and unpacked whole, whatever is wanted of it;
// those that were used last are kept.
class UnpackedPieces : public storage::Store {
 public:
  // By the objects' names. `kept_bytes` is of one process.
  using Objects = std::map<std::string, PackedPieces, std::less<>>;
  static constexpr int64_t kKeptBytes = int64_t{256} << 20;

  UnpackedPieces(std::shared_ptr<const storage::Store> store, Objects objects,
                 int64_t kept_bytes = kKeptBytes);

  const std::string& uri() const override { return store_->uri(); }
  // Wherever they lie: of many reads at a time each would hold a piece.
  bool is_remote() const override { return false; }
  absl::StatusOr<std::vector<storage::Object>> List(std::string_view prefix) const override {
    return store_->List(prefix);
  }
  absl::StatusOr<storage::Object> Head(std::string_view name) const override {
    return store_->Head(name);
  }
  // kDataLoss: a piece is damaged.
  absl::Status Read(const storage::Object& object, int64_t offset,
                    absl::Span<uint8_t> out) const override;

 private:
  const std::shared_ptr<const storage::Store> store_;
  const Objects objects_;
  mutable KeptBytes kept_;
};

}  // namespace hetero::source
