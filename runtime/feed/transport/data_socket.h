#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/feed/transport/tls_handshake.h"
#include "runtime/feed/transport/tls_records.h"

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

// One end of it, which never waits: what cannot be done yet is asked for again when the socket is
// ready. One thread at a time; Shutdown() may come from any. Errors are kUnavailable, final, and
// say what the system or TLS says.
class DataSocket {
 public:
  // Takes `fd` over. Not connected: for Connect().
  explicit DataSocket(int fd);
  static absl::StatusOr<std::unique_ptr<DataSocket>> Create(int family);
  ~DataSocket();
  DataSocket(const DataSocket&) = delete;
  DataSocket& operator=(const DataSocket&) = delete;
  int fd() const { return fd_; }

  absl::Status Connect(const sockaddr_storage& address, socklen_t size);  // begins to
  absl::Status Connected() const;  // once it can be written to: how that went

  // TLS 1.3 from here on, between two who know `key` and nobody else: the handshake is OpenSSL's,
  // the records are those of tls_records.h. Nothing goes in plain text any more. Only between
  // writes, and before ReadAhead().
  absl::Status Secure(const std::string& key, TlsSide side);
  // Until it says kDone.
  absl::StatusOr<TlsHandshake::State> ShakeHands();

  // From now on bytes behind those that were asked for are read, too: headers are small, and a call
  // for each would cost too much. After the handshake.
  void ReadAhead();
  // The socket can be read: until then Read() need not try where it has found all there was.
  void SetReadable() { drained_ = false; }
  // How many of `size` bytes were there; 0: none has come yet.
  absl::StatusOr<size_t> Read(void* out, size_t size);
  // Whether the other side, which has nothing to say, has closed it; kUnavailable where it has.
  absl::Status CheckSilent() const;

  // All of them, in order, once Flush() has said so of what was there before. The bytes stay as
  // they are until it says so of them.
  void Write(std::vector<WirePart> parts);
  // Whether all is sent; if not, the socket must be ready to write first.
  absl::StatusOr<bool> Flush();
  enum class Flushed { kAll, kBlocked, kEnough };
  // As Flush(), and kEnough after `*most` bytes, which become less by those that were sent.
  absl::StatusOr<Flushed> FlushSome(size_t* most);

  // Ends it for both sides.
  void Shutdown();

 private:
  absl::StatusOr<size_t> Receive(void* out, size_t size);
  // What was not asked for goes where it is read ahead.
  absl::StatusOr<size_t> ReceiveAhead(void* out, size_t size);
  absl::StatusOr<Flushed> Send(size_t* most);

  const int fd_;
  std::unique_ptr<TlsHandshake> handshake_;
  bool secure_ = false;  // Secure() was called
  std::unique_ptr<RecordReader> reader_;
  std::unique_ptr<RecordWriter> writer_;
  bool drained_ = false;        // what was there last was all
  std::vector<uint8_t> ahead_;  // empty: nothing is read ahead
  size_t ahead_begin_ = 0, ahead_end_ = 0;
  std::vector<WirePart> parts_;  // to be sent; under TLS sealed
  size_t part_ = 0;              // the first that is not sent
};

}  // namespace hetero::feed
