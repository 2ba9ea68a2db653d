#pragma once

#include <sys/types.h>

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cli/options.h"
#include "operator/kube/child_process.h"
#include "operator/kube/client.h"

namespace hetero::cli {

// `kubectl port-forward` as a child process, for pods whose NetworkPolicy keeps the API server out:
// the node carries the connection, which no policy can forbid. It listens on 127.0.0.1 only; it
// ends with this object, and with this process, however that ends.
class PortForward {
 public:
  // Waits until it listens, ten seconds at most. `options` say which cluster and as whom,
  // `name_space` is the pod's. Errors: kCancelled; kUnavailable with the end of what kubectl
  // says, or the shell where there is none.
  static absl::StatusOr<std::unique_ptr<PortForward>> Open(const Options& options,
                                                           const std::string& name_space,
                                                           const std::string& pod, int port,
                                                           base::Clock& clock,
                                                           const std::stop_token& stop);
  PortForward(const PortForward&) = delete;
  PortForward& operator=(const PortForward&) = delete;
  ~PortForward();

  // HTTP of the pod's port; five seconds at most. kUnavailable once kubectl or the pod is gone,
  // with what kubectl said last.
  absl::StatusOr<std::string> Get(const std::string& path, const std::stop_token& stop);

 private:
  PortForward() = default;
  absl::Status Connect(base::Clock& clock);
  // What kubectl has said since the last call goes to `said_`; false when it has ended.
  bool Listen();

  pid_t pid_ = -1;          // of the shell that holds kubectl
  kube::Descriptor leash_;  // that shell ends kubectl when this end of a pipe is closed
  kube::Descriptor
      output_;        // of kubectl; open as long as it lives, or it would end at its next line
  std::string said_;  // its last words
  int local_port_ = 0;
  metrics::Registry registry_;
  std::unique_ptr<kube::Transport> transport_;
  std::unique_ptr<kube::Client> client_;
};

// The port in "Forwarding from 127.0.0.1:40041 -> 7072", once that line is whole; 0 before. Pure.
int ForwardedPort(std::string_view said);

}  // namespace hetero::cli
