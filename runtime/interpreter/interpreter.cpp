#include "runtime/interpreter/interpreter.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::interpreter {
namespace {

constexpr size_t kAlignment = 64;
constexpr timeval kLookPeriod = {.tv_sec = 0, .tv_usec = 200'000};  // whether to go on waiting

size_t Aligned(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

absl::Status SystemError(const char* what) {
  return absl::UnavailableError(
      absl::StrCat("no interpreter of Python: ", what, ": ", strerror(errno)));
}

// One byte with a descriptor beside it.
bool SendDescriptor(int socket, int descriptor) {
  char byte = 'd';
  iovec bytes{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == 1;
}

bool SendRequest(int socket, const Request& request) {
  ssize_t sent = 0;
  do {
    sent = send(socket, &request, sizeof request, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == sizeof request;
}

Interpreter::Outcome OutcomeOf(ReplyCode code) {
  switch (code) {
    case ReplyCode::kDone:
      return Interpreter::Outcome::kDone;
    case ReplyCode::kRaised:
      return Interpreter::Outcome::kRaised;
    case ReplyCode::kRetry:
      return Interpreter::Outcome::kRetry;
    case ReplyCode::kWrongResult:
      return Interpreter::Outcome::kWrongResult;
  }
  return Interpreter::Outcome::kEnded;
}

absl::Status HostHasEnded() {
  return absl::UnavailableError("the process that forks the interpreters of Python has ended");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Interpreter>> Interpreter::Fork(int control, base::Duration patience,
                                                               base::Clock& clock,
                                                               const std::atomic<bool>& stopping) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return SystemError("socketpair");
  }
  std::unique_ptr<Interpreter> made(new Interpreter(base::Socket(ends[0])));
  base::Socket theirs(ends[1]);
  setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &kLookPeriod, sizeof kLookPeriod);
  if (!SendDescriptor(control, theirs.fd())) {
    return HostHasEnded();
  }
  // Ours would hide that theirs is closed.
  theirs = base::Socket();
  uint64_t pid = 0;
  const ssize_t size = made->Receive(&pid, sizeof pid, clock.Now() + patience, clock, stopping);
  if (size == sizeof pid) {
    made->pid_ = static_cast<pid_t>(pid);
    return made;
  }
  if (size < 0 && stopping.load()) return absl::CancelledError("stopped");
  if (size < 0) {
    return absl::DeadlineExceededError(absl::StrCat("no interpreter of Python has begun within ",
                                                    base::ToSeconds(patience), " s"));
  }
  // A process that is about to end still takes messages.
  pollfd host{.fd = control, .events = POLLRDHUP, .revents = 0};
  if (poll(&host, 1, 0) == 1 && (host.revents & (POLLRDHUP | POLLHUP)) != 0) return HostHasEnded();
  return absl::AbortedError("an interpreter of Python ended before it began");
}

Interpreter::~Interpreter() {
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
}

ssize_t Interpreter::Receive(void* buffer, size_t size, base::Instant deadline, base::Clock& clock,
                             const std::atomic<bool>& stopping) {
  while (true) {
    const ssize_t received = recv(socket_.fd(), buffer, size, 0);
    if (received >= 0) return received;
    if (errno != EINTR && errno != EAGAIN) return 0;  // reset: as good as closed
    if (stopping.load()) return -1;
    if (clock.Now() >= deadline) return -1;
  }
}

absl::Status Interpreter::Reserve(size_t bytes) {
  if (bytes <= memory_bytes_) return absl::OkStatus();
  // Pictures of many sizes must not mean a new one for each that is a little larger.
  const size_t wanted = std::max(bytes, memory_bytes_ + memory_bytes_ / 2);
  const base::Socket file(memfd_create("hetero-python", MFD_CLOEXEC));
  if (!file.open()) return SystemError("memfd_create");
  if (ftruncate(file.fd(), static_cast<off_t>(wanted)) != 0) return SystemError("ftruncate");
  void* const memory =
      mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), /*offset=*/0);
  if (memory == MAP_FAILED) return SystemError("mmap");
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
  memory_ = static_cast<uint8_t*>(memory);
  memory_bytes_ = wanted;
  const Request request{.kind = RequestKind::kMemory, .memory_bytes = wanted};
  if (!SendRequest(socket_.fd(), request) || !SendDescriptor(socket_.fd(), file.fd())) {
    return absl::UnavailableError("the interpreter has ended");
  }
  return absl::OkStatus();
}

Interpreter::Answer Interpreter::Call(Request call, const pipeline::ImageView& in,
                                      pipeline::Image* out, base::Duration patience,
                                      base::Clock& clock, const std::atomic<bool>& stopping) {
  const auto bytes = static_cast<size_t>(pipeline::ByteSize(in.shape));
  call.number = static_cast<uint64_t>(++calls_);
  if (call.function >= calls_of_.size()) calls_of_.resize(call.function + 1);
  ++calls_of_[call.function];
  call.kind = RequestKind::kCall;
  call.height = in.shape.height;
  call.width = in.shape.width;
  call.channels = in.shape.channels;
  call.result_at = Aligned(bytes);
  if (const absl::Status reserved = Reserve(call.result_at + out->bytes.size()); !reserved.ok()) {
    return {Outcome::kEnded, std::string(reserved.message())};
  }
  memcpy(memory_, in.data, bytes);
  constexpr char kEnded[] =
      "its interpreter ended: it was killed, or the function ends its process";
  if (!SendRequest(socket_.fd(), call)) return {Outcome::kEnded, kEnded};
  std::array<char, sizeof(Reply) + kMostText> message;
  const base::Instant deadline = clock.Now() + patience;
  Reply reply;
  ssize_t size = 0;
  do {  // what a process of the function's said, which is none of ours
    size = Receive(message.data(), message.size(), deadline, clock, stopping);
    if (size >= static_cast<ssize_t>(sizeof reply)) memcpy(&reply, message.data(), sizeof reply);
  } while (size >= static_cast<ssize_t>(sizeof reply) && reply.number != call.number);
  if (size < 0) {
    kill(pid_, SIGKILL);
    if (stopping.load()) return {Outcome::kStopped, "stopped"};
    return {Outcome::kHung, absl::StrCat("no result after ", base::ToSeconds(patience), " s")};
  }
  if (size < static_cast<ssize_t>(sizeof reply)) return {Outcome::kEnded, kEnded};
  Answer answer{
      .outcome = OutcomeOf(reply.code),
      .text = std::string(message.data() + sizeof reply, static_cast<size_t>(size) - sizeof reply),
      .cpu = std::chrono::nanoseconds(reply.cpu_ns)};
  if (answer.outcome == Outcome::kDone) {
    memcpy(out->bytes.data(), memory_ + call.result_at, out->bytes.size());
  }
  return answer;
}

int64_t Interpreter::OwnBytes() const {
  std::ifstream file(absl::StrCat("/proc/", pid_, "/statm"));
  int64_t mapped = 0, resident = 0, shared = 0;
  if (!(file >> mapped >> resident >> shared)) return 0;
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

int64_t Interpreter::GrownBytes() const { return OwnBytes() - own_before_; }

int64_t Interpreter::PrivateBytes() {
  own_before_ = OwnBytes();
  std::ifstream file(absl::StrCat("/proc/", pid_, "/smaps_rollup"));
  int64_t bytes = 0;
  for (std::string word; file >> word;) {
    int64_t kibibytes = 0;
    const bool own = word == "Private_Clean:" || word == "Private_Dirty:";
    if (own && file >> kibibytes) bytes += kibibytes * 1024;
  }
  return bytes;
}

}  // namespace hetero::interpreter
