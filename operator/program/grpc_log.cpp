#include "operator/program/grpc_log.h"

#include <grpc/support/log.h>

#include "base/log.h"

namespace hetero::program {

void SendGrpcLogToOurs() {
  gpr_set_log_function([](gpr_log_func_args* line) {
    log::Debug("gRPC", {{"severity", gpr_log_severity_string(line->severity)},
                        {"message", line->message},
                        {"file", line->file},
                        {"line", line->line}});
  });
}

}  // namespace hetero::program
