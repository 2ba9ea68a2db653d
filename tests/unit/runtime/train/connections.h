#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <string>

namespace hetero::train {

// Shuts down every TCP connection of this process.
inline void CutEveryConnection() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename());
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) != 0) continue;
    if (peer.ss_family == AF_INET || peer.ss_family == AF_INET6) shutdown(descriptor, SHUT_RDWR);
  }
}

}  // namespace hetero::train
