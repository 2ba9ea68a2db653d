#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/feed/transport/aes_gcm.h"
#include "runtime/feed/transport/tls_secret.h"

// The records of TLS 1.3 (RFC 8446, section 5) after a handshake by OpenSSL, whose own records cost
// a copy more on either side: here bytes are sealed out of the batch's memory, and opened into it.
namespace hetero::feed {

struct WirePart {
  const void* data = nullptr;
  size_t size = 0;
};

inline constexpr size_t kRecordBytes = size_t{1} << 14;  // of data, at most
inline constexpr size_t kRecordHeaderBytes = 5;
// Of one key; AES-GCM is good for 2^24.5 (RFC 8446, section 5.5).
inline constexpr uint64_t kRecordsOfKey = uint64_t{1} << 23;

// One direction of a connection, from the secret of its handshake on.
class RecordKey {
 public:
  // Fails when the cryptographic library does.
  static absl::StatusOr<RecordKey> Of(Secret secret, AesGcm::Direction direction);
  absl::Status Update();  // as KeyUpdate says

  AesGcm& cipher() { return *cipher_; }
  AesGcm::Nonce NextNonce() { return NonceOf(iv_, records_++); }
  uint64_t records() const { return records_; }  // sealed or opened with this key

 private:
  Secret secret_;
  AesGcm::Nonce iv_{};
  std::unique_ptr<AesGcm> cipher_;
  AesGcm::Direction direction_{};
  uint64_t records_ = 0;
};

// Seals. One thread.
class RecordWriter {
 public:
  // `records_of_key`: after so many it takes the next key, and says so.
  explicit RecordWriter(RecordKey key, uint64_t records_of_key = kRecordsOfKey);
  // What is to be sealed next, in order, once Next() has given the end of what was there before.
  // The bytes stay as they are until then.
  void Begin(std::vector<WirePart> parts);
  // Records to be sent, good until the next call. Empty: that was all.
  absl::StatusOr<WirePart> Next();

 private:
  // A record of `size` bytes, which `seal` puts through the cipher.
  absl::Status Add(uint8_t type, size_t size, absl::FunctionRef<void(uint8_t* to)> seal);
  void SealParts(size_t size, uint8_t* out);

  RecordKey key_;
  const uint64_t records_of_key_;
  std::vector<uint8_t> buffer_;  // as large as was needed so far
  size_t filled_ = 0;
  std::vector<WirePart> parts_;
  size_t part_ = 0, from_ = 0, left_ = 0;  // what is not sealed yet: from this byte of this part on
};

// Opens. One thread. Errors are kUnavailable, and final.
class RecordReader {
 public:
  using Receive = absl::FunctionRef<absl::StatusOr<size_t>(uint8_t* to, size_t most)>;
  explicit RecordReader(RecordKey key);
  // At most `size` > 0 bytes; 0 when `receive` says 0: nothing has come yet. What lies behind them
  // in `out` is nothing.
  absl::StatusOr<size_t> Read(uint8_t* out, size_t size, Receive receive);

 private:
  // The size of the data of the record at the front, when all of it is there.
  absl::StatusOr<size_t> Whole(bool* whole) const;
  // Takes that record, whose data may be none for the reader: 0 is returned then.
  absl::StatusOr<size_t> Open(size_t size, uint8_t* out);
  absl::Status Obey(uint8_t type, const uint8_t* message, size_t size);

  // Of what is there; 0: of that no record is whole, or it has failed.
  size_t OpenSome(uint8_t* out, size_t size);

  RecordKey key_;
  std::vector<uint8_t> buffer_;  // sealed bytes in [begin_, end_)
  size_t begin_ = 0, end_ = 0;
  std::vector<uint8_t> rest_;  // of a record that was larger than what was asked for
  size_t rest_begin_ = 0, rest_end_ = 0;
  absl::Status failed_;  // told when what came before it was read
};

}  // namespace hetero::feed
