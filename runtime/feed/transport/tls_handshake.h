#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
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

// On a connected socket, of which it reads no byte more than the handshake has. `wait` waits for
// `events` of poll() when the socket does not block, and says the error of a time that is over.
absl::StatusOr<TrafficSecrets> ShakeHands(int fd, const std::string& key, TlsSide side,
                                          absl::FunctionRef<absl::Status(short events)> wait);

}  // namespace hetero::feed
