#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/tls.h"

namespace grpc {
class Channel;
class Status;
}  // namespace grpc

namespace hetero::head {

// A connection of its own to the head, tried again at least once a second while it is down.
absl::StatusOr<std::shared_ptr<grpc::Channel>> DialHead(const std::string& address,
                                                        const base::TlsOptions& tls);

// The same code; the message names the head and its address.
absl::Status ToAbsl(const grpc::Status& status, const std::string& head_address);

}  // namespace hetero::head
