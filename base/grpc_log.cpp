#include "base/grpc_log.h"

#include <grpc/support/log.h>

#include <string>
#include <string_view>

#include "base/log.h"
#include "base/refused_peers.h"

namespace hetero::base {
namespace {

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

void OnServerLine(gpr_log_func_args* arguments) {
  const std::string_view line = arguments->message;
  if (line.starts_with(kHandshakeFailed)) {
    ReportRefusedPeer("one whose TLS handshake failed", HandshakeError(line));
    return;
  }
  const bool told =
      arguments->severity == GPR_LOG_SEVERITY_ERROR && !line.starts_with(kNoHostName) &&
      AdmitComplaint(std::string(arguments->file) + std::to_string(arguments->line)).tell;
  const log::Fields fields = {
      {"message", line}, {"file", arguments->file}, {"line", arguments->line}};
  if (told) {
    log::Warning("gRPC", fields);
  } else {
    log::Debug("gRPC", fields);
  }
}

void OnClientLine(gpr_log_func_args* arguments) {
  log::Debug("gRPC", {{"severity", gpr_log_severity_string(arguments->severity)},
                      {"message", arguments->message},
                      {"file", arguments->file},
                      {"line", arguments->line}});
}

}  // namespace

void SendGrpcLogToOurs(GrpcLines lines) {
  switch (lines) {
    case GrpcLines::kOfServer:
      gpr_set_log_function(OnServerLine);
      return;
    case GrpcLines::kOfClient:
      gpr_set_log_function(OnClientLine);
      return;
  }
}

}  // namespace hetero::base
