#pragma once

namespace hetero::base {

// Keeps gRPC initialised until the process ends. Without it gRPC tears its threads down whenever
// its last object goes away, and joining them was seen to block for five seconds (gRPC 1.51). Call
// early in main().
void KeepGrpcInitialized();

}  // namespace hetero::base
