#include "base/refused_peers.h"

#include <grpc/support/log.h>

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/refusal_throttle.h"

namespace hetero::base {
namespace {

struct SharedThrottle {
  Mutex mutex;
  RefusalThrottle throttle ABSL_GUARDED_BY(mutex);
};

RefusalThrottle::Verdict Admit(const std::string& kind) {
  static SharedThrottle& shared = *new SharedThrottle;
  const MutexLock lock(shared.mutex);
  return shared.throttle.Admit(kind, Clock::Real().Now());
}

constexpr std::string_view kHandshakeFailed = "Handshake failed with fatal error ";

// Of every client that dials by address; certificates of jobs name no hosts.
constexpr std::string_view kNoHostName = "No match found for server name";

// "SSL_ERROR_SSL: error:0A0000C7:SSL routines::peer did not return a certificate." -> the words.
std::string_view Words(std::string_view line) {
  while (line.ends_with('.')) line.remove_suffix(1);
  const size_t colons = line.rfind("::");
  return colons == std::string_view::npos ? line : line.substr(colons + 2);
}

std::string HandshakeError(std::string_view line) {
  const std::string_view words = Words(line);
  const bool plain = words == "wrong version number" || words == "http request";
  return std::string(plain ? "it does not speak TLS: " : "").append(words);
}

void OnGrpcLine(gpr_log_func_args* arguments) {
  const std::string_view line = arguments->message;
  if (line.starts_with(kHandshakeFailed)) {
    ReportRefusedPeer("one whose TLS handshake failed", HandshakeError(line));
    return;
  }
  const bool told = arguments->severity == GPR_LOG_SEVERITY_ERROR &&
                    !line.starts_with(kNoHostName) &&
                    Admit(std::string(arguments->file) + std::to_string(arguments->line)).tell;
  const log::Fields fields = {
      {"message", line}, {"file", arguments->file}, {"line", arguments->line}};
  if (told) {
    log::Warning("gRPC", fields);
  } else {
    log::Debug("gRPC", fields);
  }
}

}  // namespace

void ReportRefusedPeer(const std::string& who, const std::string& why) {
  const auto [tell, untold] = Admit(who + '\n' + why);
  if (tell) log::Warning("peer refused", {{"peer", who}, {"reason", why}, {"before", untold}});
}

void SendGrpcLogToOurs() { gpr_set_log_function(OnGrpcLine); }

}  // namespace hetero::base
