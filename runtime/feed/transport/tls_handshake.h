#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/feed/transport/tls_secret.h"

// OpenSSL's handshake of TLS 1.3 between two who know a key and nobody else, without certificates,
// with TLS_AES_128_GCM_SHA256 and fresh Diffie-Hellman keys.
namespace hetero::feed {

// Of RecordWriter and RecordReader.
struct TrafficSecrets {
  Secret sent, received;
};

enum class TlsSide { kTrainer, kWorker };

// On a connected socket that does not block, of which it reads no byte more than the handshake has.
// Errors are kUnavailable, and final. One thread at a time.
class TlsHandshake {
 public:
  static absl::StatusOr<std::unique_ptr<TlsHandshake>> Begin(int fd, std::string key, TlsSide side);
  virtual ~TlsHandshake() = default;
  enum class State { kDone, kReads, kWrites };  // which of them it waits for
  virtual absl::StatusOr<State> GoOn() = 0;
  virtual absl::StatusOr<TrafficSecrets> TakeSecrets() = 0;  // once it is done
};

}  // namespace hetero::feed
