#include "runtime/train/progress/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/status_macros.h"

namespace hetero::train {
namespace {

// Fields of tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto.
constexpr uint32_t kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5;
constexpr uint32_t kSummaryValue = 1;
constexpr uint32_t kValueTag = 1, kValueSimpleValue = 2;

// Wire types of protobuf.
constexpr uint32_t kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5;

constexpr char kFileVersion[] = "brain.Event:2";

void PutVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void PutKey(uint32_t field, uint32_t wire_type, std::string* out) {
  PutVarint(field << 3 | wire_type, out);
}

void PutFixed(uint64_t bits, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(bits >> (8 * i)));
}

void PutBytes(uint32_t field, std::string_view bytes, std::string* out) {
  PutKey(field, kLengthDelimited, out);
  PutVarint(bytes.size(), out);
  out->append(bytes);
}

std::string EventAt(base::WallTime now) {
  std::string event;
  PutKey(kEventWallTime, kFixed64, &event);
  const double seconds = std::chrono::duration<double>(now.time_since_epoch()).count();
  PutFixed(std::bit_cast<uint64_t>(seconds), 8, &event);
  return event;
}

uint32_t MaskedCrc(std::string_view bytes) {
  const uint32_t crc = base::Crc32c(bytes.data(), bytes.size());
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace

std::string EventRecord(std::string_view event) {
  std::string record;
  PutFixed(event.size(), 8, &record);
  PutFixed(MaskedCrc(record), 4, &record);
  record.append(event);
  PutFixed(MaskedCrc(event), 4, &record);
  return record;
}

absl::StatusOr<std::unique_ptr<EventFile>> EventFile::Create(const std::string& folder,
                                                             base::WallTime now) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  char host[256] = "localhost";
  gethostname(host, sizeof(host) - 1);
  const int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  const std::string path =
      absl::StrFormat("%s/events.out.tfevents.%010d.%s.%d", folder, seconds, host, getpid());
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", path));
  std::unique_ptr<EventFile> file(new EventFile(fd, path));
  std::string event = EventAt(now);
  PutBytes(kEventFileVersion, kFileVersion, &event);
  HETERO_RETURN_IF_ERROR(file->Append(event));
  return file;
}

EventFile::~EventFile() { close(fd_); }

absl::Status EventFile::Add(int64_t step, base::WallTime now, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    PutBytes(kValueTag, scalar.tag, &value);
    PutKey(kValueSimpleValue, kFixed32, &value);
    PutFixed(std::bit_cast<uint32_t>(static_cast<float>(scalar.value)), 4, &value);
    PutBytes(kSummaryValue, value, &summary);
  }
  std::string event = EventAt(now);
  PutKey(kEventStep, kVarint, &event);
  PutVarint(static_cast<uint64_t>(step), &event);
  PutBytes(kEventSummary, summary, &event);
  return Append(event);
}

absl::Status EventFile::Append(std::string_view event) {
  const std::string record = EventRecord(event);
  std::string_view rest = record;
  while (!rest.empty()) {
    const ssize_t written = write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path_));
    rest.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace hetero::train
