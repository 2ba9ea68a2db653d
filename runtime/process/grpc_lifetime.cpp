#include "runtime/process/grpc_lifetime.h"

#include <grpc/grpc.h>

namespace hetero::process {

void KeepGrpcInitialized() { grpc_init(); }

}  // namespace hetero::process
