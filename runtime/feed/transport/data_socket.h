#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/feed/transport/tls_handshake.h"
#include "runtime/feed/transport/tls_records.h"
#include "runtime/feed/wire/byte_source.h"

// The TCP connection that carries batches from a CPU worker to a trainer beside their gRPC stream,
// so that the bytes are read straight into the batch. What is said on it, by whom and when:
// DataOffer in proto/hetero/v1/feed.proto.
namespace hetero::feed {

inline constexpr std::array<char, 8> kDataMagic = {'H', 'E', 'T', 'D', 'A', 'T', 'A', '1'};
inline constexpr size_t kDataKeyBytes = 32;

// What a trainer says over the stream of the connection that it opens beside it.
struct DataOffer {
  uint64_t id = 0;  // random
  std::string key;  // kDataKeyBytes of it, for TLS; empty: plain text
};

// Random; empty when the system has no randomness.
std::string NewDataKey();

// One end of it. One thread reads and writes; Shutdown() may come from any. Errors are kUnavailable
// and say what the system or TLS says; kDeadlineExceeded when SetTimeout()'s time is over.
class DataSocket : public ByteSource {
 public:
  // Takes `fd` over. Not connected: for Connect().
  explicit DataSocket(int fd);
  static absl::StatusOr<std::unique_ptr<DataSocket>> Create(int family);
  ~DataSocket() override;
  DataSocket(const DataSocket&) = delete;
  DataSocket& operator=(const DataSocket&) = delete;

  absl::Status Connect(const sockaddr_storage& address, socklen_t size, base::Duration timeout);
  // Of each single read and write from now on; zero: none.
  void SetTimeout(base::Duration timeout);
  // Of Secure() and of all reads from now on, together, however slowly the bytes come; without a
  // clock: none. `clock` outlives it.
  void SetDeadline(const base::Clock* clock, base::Instant deadline = {});
  // A frame of more is an error before there is memory for it; the largest number there is at
  // first.
  void SetMostBytes(size_t most) { most_bytes_ = most; }
  // TLS 1.3 from here on, between two who know `key` and nobody else: the handshake is OpenSSL's,
  // the records are those of tls_records.h.
  using Side = TlsSide;
  absl::Status Secure(const std::string& key, Side side);

  // From now on: headers are small, and a call for each of their fields would cost too much. After
  // Secure().
  void ReadAhead();
  size_t left() const override;
  absl::Status Read(void* out, size_t size) override;
  absl::Status Write(const std::vector<WirePart>& parts);  // all of them, in order
  // Ends it for both sides: what waits in Read() or Write() fails.
  void Shutdown();

 private:
  absl::StatusOr<size_t> ReadSome(void* out, size_t size);  // at least one byte
  absl::StatusOr<size_t> Receive(void* out, size_t size);   // as it comes
  absl::Status Send(std::vector<iovec> left);
  // For `events` of poll(), until the deadline.
  absl::Status WaitFor(short events) const;
  void SetBlocking(bool blocking) const;

  const int fd_;
  const base::Clock* clock_ = nullptr;  // null: no deadline
  base::Instant deadline_;
  size_t most_bytes_ = std::numeric_limits<size_t>::max();
  bool secure_ = false;  // Secure() was called: nothing goes in plain text from then on
  std::unique_ptr<RecordReader> reader_;
  std::unique_ptr<RecordWriter> writer_;
  // What was read ahead: headers are small, and a call for each of their fields would cost too
  // much.
  std::vector<uint8_t> ahead_;  // empty: not yet
  size_t ahead_begin_ = 0, ahead_end_ = 0;
};

}  // namespace hetero::feed
