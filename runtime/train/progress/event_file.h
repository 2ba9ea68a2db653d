#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"

namespace hetero::train {

struct Scalar {
  std::string_view tag;  // "loss/train": what stands before the slash groups the curves
  double value = 0;
};

// An event file of TensorBoard: a sequence of records (tensorflow/core/lib/io/record_writer.h)
// each holding one Event message (tensorflow/core/util/event.proto). Belongs to one thread.
class EventFile {
 public:
  // Creates FOLDER/events.out.tfevents.SECONDS.HOST.PID with its parents, as TensorBoard looks for.
  static absl::StatusOr<std::unique_ptr<EventFile>> Create(const std::string& folder,
                                                           base::WallTime now);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // One event; a reader sees it at once. After an error (disk full) the file may end in half a
  // record, which readers skip.
  absl::Status Add(int64_t step, base::WallTime now, const std::vector<Scalar>& scalars);

  const std::string& path() const { return path_; }

 private:
  EventFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  absl::Status Append(std::string_view event);

  int fd_;
  std::string path_;
};

// The record around `event`: length, its masked CRC32C, the bytes, their masked CRC32C.
std::string EventRecord(std::string_view event);

}  // namespace hetero::train
