#pragma once

namespace hetero::feed {

// Makes this process's allocator keep the memory that batches and gRPC's buffers have had. By
// default each one of some hundred kilobytes goes back to the kernel when it is freed, and comes
// back as pages that must be cleared and mapped again: a third of a receiver's CPU time. What is
// kept is bounded, a few tens of megabytes. Idempotent; safe from any thread.
void KeepFreedMemory();

}  // namespace hetero::feed
