#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/feed/wire/messages.h"

namespace hetero::feed {

// Takes the frames of a connection piece by piece, as their bytes come, and says of each piece
// where it belongs: the bytes of a batch are received into its memory. Checks as DecodeFrames()
// does. Not thread-safe.
class FrameReader {
 public:
  explicit FrameReader(OpenMemory open_memory);
  ~FrameReader();

  // Where the next bytes belong; never empty.
  struct Room {
    uint8_t* to;
    size_t size;
  };
  Room room() const { return room_; }
  // `size` bytes of it are there. The frame once it is whole: the next one is then awaited. `left`
  // as ByteSource says it. Errors are final.
  absl::StatusOr<std::optional<Frame>> Take(size_t size, size_t left);
  // After Take() has thrown std::bad_alloc, which is final too: what there is to say of that. A
  // batch whose ticket is known goes to `on_frame` as kFailed, or it would be asked for again for
  // ever: what only ends a connection is nobody's fault.
  absl::Status FailForMemory(const std::function<void(Frame)>& on_frame) const;

 private:
  enum class Part { kPrefix, kHeader, kImages, kFields };
  struct Open;  // the frame that is being read

  void Await();  // the next frame
  // The part that is awaited is whole: on to the next one; true: there is none.
  absl::StatusOr<bool> TakePart(size_t left);
  absl::Status BeginHeader(size_t left);
  absl::StatusOr<bool> BeginFrame(size_t left);
  absl::Status BeginBatch(size_t left);
  bool NextOfHeader();  // whether there is more of it to come
  bool NextOfImages();
  bool NextOfFields();
  absl::StatusOr<std::optional<Frame>> Finish();

  const OpenMemory open_memory_;
  Part part_ = Part::kPrefix;
  Room room_{};
  std::array<uint8_t, 8> prefix_{};
  std::string header_;
  size_t header_left_ = 0;  // bytes of it that have no place yet
  std::unique_ptr<Open> open_;
};

}  // namespace hetero::feed
