#pragma once

#include <pthread.h>

#include <string>
#include <string_view>

namespace hetero::base {

// Names the calling thread for debuggers and top; the kernel keeps the first 15 bytes.
inline void SetThreadName(std::string_view name) {
  pthread_setname_np(pthread_self(), std::string(name.substr(0, 15)).c_str());
}

}  // namespace hetero::base
