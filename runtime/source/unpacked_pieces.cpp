#include "runtime/source/unpacked_pieces.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::source {

int64_t PackedPieces::Add(const PackedPiece& piece) {
  pieces_.push_back(piece);
  begins_.push_back(size_);
  size_ += piece.unpacked;
  return kBase + begins_.back();
}

absl::StatusOr<PackedPieces::Place> PackedPieces::Find(int64_t address, size_t size) const {
  const int64_t wanted = address - kBase;
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), wanted);
  if (wanted >= 0 && after != begins_.begin()) {
    const auto number = static_cast<size_t>(after - begins_.begin()) - 1;
    const PackedPiece& piece = pieces_[number];
    const int64_t offset = wanted - begins_[number];
    if (offset <= piece.unpacked && size <= static_cast<uint64_t>(piece.unpacked - offset)) {
      return Place{number, piece, offset};
    }
  }
  return absl::OutOfRangeError(absl::StrCat("no packed piece has ", size, " bytes at ", wanted));
}

UnpackedPieces::UnpackedPieces(std::shared_ptr<const storage::Store> store, Objects objects,
                               int64_t kept_bytes)
    : store_(std::move(store)), objects_(std::move(objects)), kept_(kept_bytes) {}

absl::Status UnpackedPieces::Read(const storage::Object& object, int64_t offset,
                                  absl::Span<uint8_t> out) const {
  if (offset < PackedPieces::kBase) return store_->Read(object, offset, out);
  const auto pieces = objects_.find(object.name);
  if (pieces == objects_.end()) return absl::OutOfRangeError(object.name);
  if (out.empty()) return absl::OkStatus();
  HETERO_ASSIGN_OR_RETURN(const PackedPieces::Place place, pieces->second.Find(offset, out.size()));
  HETERO_ASSIGN_OR_RETURN(
      const KeptBytes::Bytes bytes,
      kept_.Find(
          absl::StrCat(place.number, " ", object.name), [&]() -> absl::StatusOr<KeptBytes::Bytes> {
            std::vector<uint8_t> packed(static_cast<size_t>(place.piece.bytes));
            HETERO_RETURN_IF_ERROR(store_->Read(object, place.piece.begin, absl::MakeSpan(packed)));
            auto unpacked = std::make_shared<std::vector<uint8_t>>();
            const absl::Status status =
                Decompress(place.piece.compression, packed,
                           static_cast<size_t>(place.piece.unpacked), unpacked.get());
            if (status.ok()) return unpacked;
            return absl::DataLossError(absl::StrCat(uri(), "/", object.name, ": byte ",
                                                    place.piece.begin, ": ", status.message(),
                                                    "; copy the file again"));
          }));
  std::memcpy(out.data(), bytes->data() + place.offset, out.size());
  return absl::OkStatus();
}

}  // namespace hetero::source
