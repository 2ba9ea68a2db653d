#include "runtime/process/head.h"

#include <memory>

#include "base/log.h"
#include "base/status_macros.h"

namespace hetero::process {

absl::StatusOr<v1::JobStatus> RunHead(
    head::Server::Options options, base::Clock& clock, std::stop_token stop,
    const std::function<void(const head::Server&)>& on_listening) {
  HETERO_ASSIGN_OR_RETURN(std::unique_ptr<head::Server> server,
                          head::Server::Start(std::move(options), clock));
  log::Info("listening", {{"address", server->address()}, {"status", server->status_address()}});
  if (on_listening) on_listening(*server);
  std::stop_callback on_stop(stop, [&server] { server->Stop("stop requested"); });
  return server->Wait();
}

}  // namespace hetero::process
