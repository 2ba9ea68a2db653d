#include "runtime/feed/transport/transports.h"

#include "runtime/feed/transport/data_transport.h"
#include "runtime/feed/transport/grpc_transport.h"
#include "runtime/feed/transport/shared_memory_transport.h"
#include "runtime/feed/transport/transport.h"

namespace hetero::feed {

const Transports& EveryTransport() {
  static const auto* const list = new Transports{
      &kSharedMemoryTransport,
      &kDataTransport,
      &kGrpcTransport,
  };
  return *list;
}

}  // namespace hetero::feed
