#include "runtime/feed/transport/tls_records.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace hetero::feed {
namespace {

constexpr uint8_t kAlert = 21, kHandshake = 22, kData = 23;
constexpr uint8_t kCloseNotify = 0;                              // the second byte of an alert
constexpr std::array<uint8_t, 5> kKeyUpdate = {24, 0, 0, 1, 0};  // one that asks for none in return
constexpr size_t kTypeBytes = 1;
constexpr size_t kAround = kTypeBytes + AesGcm::kTagBytes;
constexpr size_t kMostSealed = kRecordBytes + kAround;  // without padding, which is refused
constexpr size_t kWholeRecord = kRecordHeaderBytes + kRecordBytes + kAround;
// What is sealed and sent at once, and what is received at once: stays in a core's cache.
constexpr size_t kWriteBytes = 8 * kWholeRecord;
constexpr size_t kReadBytes = 12 * kWholeRecord;

std::array<uint8_t, kRecordHeaderBytes> HeaderOf(size_t sealed) {
  return {kData, 3, 3, static_cast<uint8_t>(sealed >> 8), static_cast<uint8_t>(sealed)};
}

absl::Status Broken(absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("data connection: TLS: ", why));
}

}  // namespace

absl::StatusOr<RecordKey> RecordKey::Of(Secret secret, AesGcm::Direction direction) {
  TrafficKeys keys;
  if (!GetTrafficKeys(secret, &keys)) return Broken("no keys could be made");
  RecordKey made;
  made.secret_ = std::move(secret);
  made.iv_ = keys.iv;
  made.cipher_ = AesGcm::Create(keys.key, direction);
  made.direction_ = direction;
  if (made.cipher_ == nullptr) return Broken("AES-GCM cannot be set up");
  return made;
}

absl::Status RecordKey::Update() {
  HETERO_ASSIGN_OR_RETURN(*this, Of(NextSecret(secret_), direction_));
  return absl::OkStatus();
}

RecordWriter::RecordWriter(RecordKey key, uint64_t records_of_key)
    : key_(std::move(key)), records_of_key_(records_of_key) {}

void RecordWriter::Begin(std::vector<WirePart> parts) {
  parts_ = std::move(parts);
  part_ = from_ = left_ = 0;
  for (const WirePart& part : parts_) left_ += part.size;
}

void RecordWriter::SealParts(size_t size, uint8_t* out) {
  left_ -= size;
  while (size > 0) {
    const WirePart& part = parts_[part_];
    const size_t some = std::min(size, part.size - from_);
    if (some > 0) key_.cipher().Update(static_cast<const uint8_t*>(part.data) + from_, out, some);
    out += some;
    size -= some;
    from_ += some;
    if (from_ == part.size) {
      ++part_;
      from_ = 0;
    }
  }
}

absl::Status RecordWriter::Add(uint8_t type, size_t size, absl::FunctionRef<void(uint8_t*)> seal) {
  uint8_t* to = buffer_.data() + filled_;
  const auto header = HeaderOf(size + kAround);
  std::copy(header.begin(), header.end(), to);
  to += header.size();
  AesGcm& cipher = key_.cipher();
  cipher.Begin(key_.NextNonce(), header.data(), header.size());
  seal(to);
  to += size;
  cipher.Update(&type, to, kTypeBytes);
  to += kTypeBytes;
  AesGcm::Tag tag;
  if (!cipher.Seal(&tag)) return Broken("AES-GCM has failed");
  std::copy(tag.begin(), tag.end(), to);
  filled_ += header.size() + size + kAround;
  return absl::OkStatus();
}

absl::StatusOr<WirePart> RecordWriter::Next() {
  filled_ = 0;
  // A side that says little has no use for more.
  const size_t records = left_ / kRecordBytes + 2;
  const size_t room = std::min(kWriteBytes, records * kWholeRecord);
  if (buffer_.size() < room) buffer_.resize(room);
  while (left_ > 0 && filled_ + 2 * kWholeRecord <= buffer_.size()) {
    if (key_.records() >= records_of_key_) {
      HETERO_RETURN_IF_ERROR(Add(kHandshake, kKeyUpdate.size(), [this](uint8_t* to) {
        key_.cipher().Update(kKeyUpdate.data(), to, kKeyUpdate.size());
      }));
      HETERO_RETURN_IF_ERROR(key_.Update());
    }
    const size_t size = std::min(kRecordBytes, left_);
    HETERO_RETURN_IF_ERROR(Add(kData, size, [this, size](uint8_t* to) { SealParts(size, to); }));
  }
  return WirePart{buffer_.data(), filled_};
}

RecordReader::RecordReader(RecordKey key) : key_(std::move(key)) {}

absl::StatusOr<size_t> RecordReader::Whole(bool* whole) const {
  *whole = false;
  if (end_ - begin_ < kRecordHeaderBytes) return 0;
  const uint8_t* const header = buffer_.data() + begin_;
  const size_t sealed = size_t{header[3]} << 8 | header[4];
  if (header[0] != kData || header[1] != 3 || header[2] != 3) {
    return Broken("what came is no record");
  }
  if (sealed < kAround || sealed > kMostSealed) return Broken("a record of an impossible size");
  *whole = end_ - begin_ >= kRecordHeaderBytes + sealed;
  return sealed - kAround;
}

absl::StatusOr<size_t> RecordReader::Open(size_t size, uint8_t* out) {
  const uint8_t* const header = buffer_.data() + begin_;
  const uint8_t* const sealed = header + kRecordHeaderBytes;
  AesGcm& cipher = key_.cipher();
  cipher.Begin(key_.NextNonce(), header, kRecordHeaderBytes);
  uint8_t type = 0;
  if (size > 0) cipher.Update(sealed, out, size);
  cipher.Update(sealed + size, &type, kTypeBytes);
  AesGcm::Tag tag;
  std::copy_n(sealed + size + kTypeBytes, tag.size(), tag.begin());
  if (!cipher.Open(tag)) return Broken("bad record mac");
  begin_ += kRecordHeaderBytes + size + kAround;
  if (type == kData && size == 0) return Broken("an empty record");  // of which there is no end
  if (type == kData) return size;
  HETERO_RETURN_IF_ERROR(Obey(type, out, size));
  return 0;
}

absl::Status RecordReader::Obey(uint8_t type, const uint8_t* message, size_t size) {
  if (type == kAlert && size == 2) {
    if (message[1] == kCloseNotify) {
      return absl::UnavailableError("the other side closed the data connection");
    }
    return Broken(absl::StrCat("the other side says alert ", message[1]));
  }
  // Each costs more than it is long: not one after the other.
  constexpr uint64_t kFewestRecords = 2;
  if (type == kHandshake && size == kKeyUpdate.size() && key_.records() >= kFewestRecords &&
      std::equal(kKeyUpdate.begin(), kKeyUpdate.end(), message)) {
    return key_.Update();
  }
  return Broken("an unexpected message");  // padding too: nobody here pads
}

absl::StatusOr<size_t> RecordReader::Read(uint8_t* out, size_t size, Receive receive) {
  HETERO_RETURN_IF_ERROR(failed_);
  const size_t kept = std::min(size, rest_end_ - rest_begin_);
  if (kept > 0) {
    std::memcpy(out, rest_.data() + rest_begin_, kept);
    rest_begin_ += kept;
    return kept;
  }
  if (buffer_.empty()) {
    buffer_.resize(kReadBytes);
    rest_.resize(kMostSealed);
  }
  size_t got = 0;
  while (got == 0) {
    got = OpenSome(out, size);
    if (got > 0) break;
    HETERO_RETURN_IF_ERROR(failed_);
    if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
    HETERO_ASSIGN_OR_RETURN(const size_t more,
                            receive(buffer_.data() + end_, buffer_.size() - end_));
    if (more == 0) break;
    end_ += more;
  }
  return got;
}

size_t RecordReader::OpenSome(uint8_t* out, size_t size) {
  size_t got = 0;
  while (got < size) {
    bool whole = false;
    absl::StatusOr<size_t> data = Whole(&whole);
    if (data.ok() && !whole) break;
    const bool fits = data.ok() && *data <= size - got;
    if (data.ok() && !fits && got > 0) break;
    if (data.ok()) data = Open(*data, fits ? out + got : rest_.data());
    if (!data.ok()) {
      failed_ = data.status();
      break;
    }
    if (fits) {
      got += *data;
      continue;
    }
    got = std::min(size, *data);
    std::memcpy(out, rest_.data(), got);
    rest_begin_ = got;
    rest_end_ = *data;
  }
  return got;
}

}  // namespace hetero::feed
