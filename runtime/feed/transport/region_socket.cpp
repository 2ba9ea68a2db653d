#include "runtime/feed/transport/region_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/thread.h"

namespace hetero::feed {
namespace {

constexpr std::string_view kScheme = "unix:";
constexpr std::string_view kSuffix = ".mem";
constexpr int kBacklog = 128;
constexpr size_t kMostOffered = 128;  // regions that no stream has claimed
constexpr int kPollMilliseconds = 200;
constexpr base::Duration kRefusedPause = std::chrono::milliseconds(200);
constexpr timeval kReceiveTimeout = {.tv_sec = 0, .tv_usec = 100'000};

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Room for one file, as the system wants it.
union Control {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

msghdr Message(iovec* text, Control* control) {
  msghdr message = {};
  message.msg_iov = text;
  message.msg_iovlen = 1;
  message.msg_control = control->bytes.data();
  message.msg_controllen = control->bytes.size();
  return message;
}

// All that came with `message`: they are this process's now.
std::vector<int> FilesOf(msghdr* message) {
  std::vector<int> files;
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(part) + i * sizeof file, sizeof file);
      files.push_back(file);
    }
  }
  return files;
}

}  // namespace

std::string RegionSocketPath(const std::string& address) {
  std::string_view path = address;
  if (!path.starts_with(kScheme)) return "";
  path.remove_prefix(kScheme.size());
  if (path.starts_with("//")) path.remove_prefix(2);
  if (path.empty() || path.size() + kSuffix.size() >= sizeof(sockaddr_un::sun_path)) return "";
  return std::string(path) + std::string(kSuffix);
}

absl::Status SendRegion(const std::string& path, const TrainerRegion& region) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return absl::ErrnoToStatus(errno, "socket");
  const sockaddr_un address = UnixAddress(path);
  absl::Status result;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    result = absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(errno)));
  } else {
    uint64_t token = region.token();
    iovec text = {.iov_base = &token, .iov_len = sizeof token};
    Control control = {};
    const msghdr message = Message(&text, &control);
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    const int passed = region.fd();
    std::memcpy(CMSG_DATA(part), &passed, sizeof passed);
    if (sendmsg(fd, &message, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof token)) {
      result = absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(errno)));
    }
  }
  close(fd);
  return result;
}

std::unique_ptr<RegionReceiver> RegionReceiver::Start(const std::string& path, base::Clock& clock) {
  if (path.empty()) return nullptr;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = UnixAddress(path);
  unlink(path.c_str());  // of a process that died; the feed's own socket is ours already
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, kBacklog) != 0) {
    log::Warning("no batches in shared memory", {{"path", path}, {"error", std::strerror(errno)}});
    if (fd >= 0) close(fd);
    return nullptr;
  }
  return std::unique_ptr<RegionReceiver>(new RegionReceiver(path, fd, clock));
}

RegionReceiver::RegionReceiver(std::string path, int listener, base::Clock& clock)
    : path_(std::move(path)), listener_(listener), clock_(clock) {
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

RegionReceiver::~RegionReceiver() {
  thread_.request_stop();
  shutdown(listener_, SHUT_RDWR);  // wakes poll()
  thread_.join();
  close(listener_);
  unlink(path_.c_str());
}

std::shared_ptr<WorkerRegion> RegionReceiver::Take(uint64_t token) {
  const base::MutexLock lock(mutex_);
  const auto it = std::find_if(offered_.begin(), offered_.end(),
                               [token](const auto& offer) { return offer.first == token; });
  if (it == offered_.end()) return nullptr;
  std::shared_ptr<WorkerRegion> region = std::move(it->second);
  offered_.erase(it);
  return region;
}

void RegionReceiver::Run(const std::stop_token& stop) {
  base::SetThreadName("feed-regions");
  while (!stop.stop_requested()) {
    pollfd ready = {.fd = listener_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kPollMilliseconds) <= 0 || stop.stop_requested()) continue;
    const int connection = Accept(stop);
    if (connection < 0) continue;
    // Whoever has nothing to pass on must not keep the others waiting.
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kReceiveTimeout, sizeof kReceiveTimeout);
    Receive(connection);
    close(connection);
  }
}

int RegionReceiver::Accept(const std::stop_token& stop) {
  const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection >= 0 || errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) {
    return connection;
  }
  if (!std::exchange(warned_, true)) {
    log::Warning(
        "a trainer's shared region waits: the system refuses its connection; raise the "
        "limit of open files (ulimit -n)",
        {{"path", path_}, {"error", std::strerror(errno)}});
  }
  clock_.SleepFor(kRefusedPause, stop);  // poll() would come back at once
  return connection;
}

void RegionReceiver::Receive(int connection) {
  uint64_t token = 0;
  iovec text = {.iov_base = &token, .iov_len = sizeof token};
  Control control = {};
  msghdr message = Message(&text, &control);
  const ssize_t got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  if (got < 0) return;
  const std::vector<int> files = FilesOf(&message);
  if (files.size() != 1) {
    // Where the system rounds up there is room for two, and whoever it gives is ours to close.
    for (const int file : files) close(file);
    return;
  }
  const int fd = files.front();
  absl::StatusOr<std::shared_ptr<SharedRegion>> region =
      SharedRegion::Map(fd, SharedRegion::Side::kWorker);
  absl::Status refused = region.status();
  if (refused.ok() && got != static_cast<ssize_t>(sizeof token)) {
    refused = absl::DataLossError(
        absl::StrCat("its token ends after ", got, " of ", sizeof token, " bytes"));
  }
  if (!refused.ok()) {
    log::Warning("a shared region was refused", {{"path", path_}, {"error", refused.message()}});
    return;
  }
  const base::MutexLock lock(mutex_);
  offered_.emplace_back(token, std::make_shared<WorkerRegion>(*std::move(region)));
  if (offered_.size() > kMostOffered) offered_.pop_front();
}

}  // namespace hetero::feed
