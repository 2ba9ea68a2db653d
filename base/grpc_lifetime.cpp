#include "base/grpc_lifetime.h"

#include <grpc/grpc.h>

namespace hetero::base {

void KeepGrpcInitialized() { grpc_init(); }

}  // namespace hetero::base
