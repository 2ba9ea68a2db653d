#include "runtime/train/process_group/group_sockets.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "base/mutex.h"
#include "base/socket_address.h"

namespace hetero::train {
namespace {

// Calls `visit` with a duplicate of every descriptor of this process. The duplicate stays the same
// socket even when another thread closes the original and its number is used again.
void VisitDescriptors(const std::function<void(int)>& visit) {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return;
  const int own = dirfd(directory);
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    const int descriptor = std::atoi(entry->d_name);
    if (descriptor == own) continue;
    const int duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (duplicate < 0) continue;
    visit(duplicate);
    close(duplicate);
  }
  closedir(directory);
}

std::set<std::string> Listeners() {
  std::set<std::string> found;
  VisitDescriptors([&](int descriptor) {
    int listens = 0;
    socklen_t length = sizeof(listens);
    if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0) {
      return;
    }
    if (std::string address = base::OwnAddress(descriptor); !address.empty()) {
      found.insert(std::move(address));
    }
  });
  return found;
}

}  // namespace

void IgnoreBrokenPipes() {
  struct sigaction action {};
  if (sigaction(SIGPIPE, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

std::string ListenerOpenedBy(const std::function<void()>& open) {
  static base::Mutex mutex;  // guards the set of this process's listeners between the two looks
  const base::MutexLock lock(mutex);
  const std::set<std::string> before = Listeners();
  open();
  std::string opened;
  for (const std::string& address : Listeners()) {
    if (before.contains(address)) continue;
    if (!opened.empty()) return "";
    opened = address;
  }
  return opened;
}

int CutConnections(const std::set<std::string>& listeners) {
  int cut = 0;
  VisitDescriptors([&](int descriptor) {
    // A listener itself has no peer. It must live: Gloo ends the process when its accept fails.
    const std::string peer = base::PeerAddress(descriptor);
    if (peer.empty()) return;
    if (listeners.contains(peer) || listeners.contains(base::OwnAddress(descriptor))) {
      if (shutdown(descriptor, SHUT_RDWR) == 0) ++cut;
    }
  });
  return cut;
}

}  // namespace hetero::train
