#pragma once

#include <cstdint>

// What a CPU worker and the interpreters of its Python operators say to each other, over Unix
// sockets that keep messages apart. python/hetero/interpreters.py is the other end and has the same
// layout; both come from one build.
namespace hetero::interpreter {

enum class RequestKind : uint32_t {
  kCall = 1,
  kMemory = 2,  // a message of one byte follows, with a descriptor of the memory
};

struct Request {
  uint64_t number = 0;  // of this interpreter's requests
  RequestKind kind = RequestKind::kCall;
  uint32_t function = 0;  // its place among those that were named at the start
  // Of the picture, uint8 at the beginning of the memory.
  int32_t height = 0;
  int32_t width = 0;
  int32_t channels = 0;
  uint32_t training = 0;      // 0: the sample is for validation
  uint64_t memory_bytes = 0;  // of kMemory
  uint64_t result_at = 0;     // bytes from the beginning of the memory
  // What random numbers are a function of.
  uint64_t seed = 0;
  uint64_t epoch = 0;
  uint64_t sample = 0;
  uint64_t position = 0;
  uint64_t view = 0;
};
static_assert(sizeof(Request) == 88, "as struct.Struct packs it");

enum class ReplyCode : uint32_t {
  kDone = 0,         // the result lies in the memory
  kRaised = 1,       // an exception
  kRetry = 2,        // one of the machine's: MemoryError, OSError
  kWrongResult = 3,  // not what the operator announced
};

// An answer begins with it; text for who has to mend the function follows.
struct __attribute__((packed)) Reply {
  uint64_t number = 0;  // of the request
  uint64_t cpu_ns = 0;
  ReplyCode code = ReplyCode::kDone;
};
static_assert(sizeof(Reply) == 20, "as struct.Struct packs it");

inline constexpr uint32_t kMostText = 1000;  // bytes

}  // namespace hetero::interpreter
