#include "runtime/agent/script_connections.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/thread.h"
#include "runtime/agent/unix_socket.h"

namespace hetero::agent {
namespace {

constexpr size_t kMostGuests = 16;
constexpr int kGuestPollMilliseconds = 100;  // while somebody waits to be let in
constexpr size_t kReadAtOnce = size_t{64} << 10;
constexpr base::Duration kSendPatience = std::chrono::seconds(10);
constexpr base::Duration kGuestPatience = std::chrono::seconds(5);  // until it says something
constexpr char kOneStream[] =
    "a script opens one stream, once, and other processes none: read batches in the process that "
    "opened it (DataLoader(stream, batch_size=None, num_workers=0))";

bool HasInput(int socket) {
  pollfd ready = {.fd = socket, .events = POLLIN, .revents = 0};
  return poll(&ready, 1, 0) > 0;
}

// The other side has closed it, though not all that it sent was read yet.
bool HasHungUp(int socket) {
  pollfd ready = {.fd = socket, .events = POLLRDHUP, .revents = 0};
  return poll(&ready, 1, 0) > 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScriptConnections>> ScriptConnections::Listen(
    const std::string& path, Callbacks callbacks, base::Clock& clock) {
  HETERO_ASSIGN_OR_RETURN(base::Socket listener, ListenAtPath(path));
  base::Socket wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.open()) return absl::ErrnoToStatus(errno, "eventfd");
  return std::unique_ptr<ScriptConnections>(new ScriptConnections(
      path, std::move(listener), std::move(wake), std::move(callbacks), clock));
}

ScriptConnections::ScriptConnections(std::string path, base::Socket listener, base::Socket wake,
                                     Callbacks callbacks, base::Clock& clock)
    : path_(std::move(path)),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      callbacks_(std::move(callbacks)),
      clock_(clock) {
  reader_ = std::jthread([this](const std::stop_token& stop) { Read(stop); });
}

ScriptConnections::~ScriptConnections() {
  reader_.request_stop();
  Wake();
  reader_.join();
  unlink(path_.c_str());
}

void ScriptConnections::Wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.fd(), &one, sizeof one);
}

void ScriptConnections::Admit() { CutOff(true); }

void ScriptConnections::Close() { CutOff(false); }

void ScriptConnections::CutOff(bool admits) {
  {
    const base::MutexLock lock(mutex_);
    admits_ = admitted_ = admits;
    if (connection_ != nullptr) {
      connection_->over = true;
      connection_->gone.request_stop();
    }
    changed_.NotifyAll();
  }
  Wake();
}

bool ScriptConnections::WaitForScript(const std::stop_token& stop) {
  const base::MutexLock lock(mutex_);
  return changed_.Wait(mutex_, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return connection_ != nullptr;
  });
}

std::stop_token ScriptConnections::gone() const {
  const base::MutexLock lock(mutex_);
  return connection_->gone.get_token();
}

std::optional<absl::StatusOr<Request>> ScriptConnections::NextQuestion() {
  const base::MutexLock lock(mutex_);
  changed_.Wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return connection_->over || connection_->question.has_value();
  });
  return std::exchange(connection_->question, std::nullopt);
}

absl::Status ScriptConnections::Send(const nlohmann::json& answer, int passed) {
  std::shared_ptr<Connection> connection;
  {
    const base::MutexLock lock(mutex_);
    connection = connection_;
    connection->asked = false;  // it may ask again as soon as it has read the answer
  }
  return SendAll(connection->socket.fd(), EncodeMessage(answer), passed, kSendPatience);
}

void ScriptConnections::End(bool may_come_again) {
  {
    const base::MutexLock lock(mutex_);
    shutdown(connection_->socket.fd(), SHUT_RDWR);
    // Cut off by Admit(), it is for the next one to come.
    connection_.reset();
    admits_ = admits_ || may_come_again;
  }
  Wake();
}

void ScriptConnections::Read(const std::stop_token& stop) {
  base::SetThreadName("script-socket");
  while (!stop.stop_requested()) {
    std::shared_ptr<Connection> connection;
    {
      const base::MutexLock lock(mutex_);
      if (connection_ != nullptr && !connection_->over) connection = connection_;
    }
    std::vector<pollfd> watched = {{.fd = wake_.fd(), .events = POLLIN, .revents = 0},
                                   {.fd = listener_.fd(), .events = POLLIN, .revents = 0}};
    if (guests_.size() == kMostGuests) watched[1].events = 0;
    if (connection != nullptr) {
      watched.push_back({.fd = connection->socket.fd(), .events = POLLIN, .revents = 0});
    }
    poll(watched.data(), watched.size(), guests_.empty() ? -1 : kGuestPollMilliseconds);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t woken = read(wake_.fd(), &count, sizeof count);
    if (watched[1].revents != 0) AcceptGuests();
    if (connection != nullptr && watched[2].revents != 0) ReadFrom(connection);
    connection.reset();
    SeeToGuests();
  }
}

void ScriptConnections::AcceptGuests() {
  // Those who come when there are many wait in the system's queue.
  while (guests_.size() < kMostGuests) {
    base::Socket socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) return;
    guests_.push_back({.socket = std::move(socket), .since = clock_.Now()});
  }
}

void ScriptConnections::SeeToGuests() {
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    std::string why;
    {
      const base::MutexLock lock(mutex_);
      if (!admitted_) return;  // they wait
      const bool ends =
          connection_ != nullptr && (connection_->over || HasHungUp(connection_->socket.fd()));
      if (ends) return;
      if (connection_ == nullptr && admits_) {
        admits_ = false;
        connection_ = std::make_shared<Connection>();
        connection_->socket = std::move(guest->socket);
        guest = guests_.erase(guest);
        changed_.NotifyAll();
        Wake();
        continue;
      }
      why = connection_ == nullptr
                ? absl::StrCat("this rank's script has had its stream: ", kOneStream)
                : absl::StrCat("this rank's stream is in use by process ",
                               PeerProcess(connection_->socket.fd()), ": ", kOneStream);
    }
    // Nobody hears an answer before having asked.
    if (HasInput(guest->socket.fd()) || clock_.Now() - guest->since > kGuestPatience) {
      TurnAway(*guest, why);
      guest = guests_.erase(guest);
    } else {
      ++guest;
    }
  }
}

void ScriptConnections::TurnAway(const Guest& guest, const std::string& why) const {
  log::Warning("a connection to a script's stream was refused",
               {{"pid", PeerProcess(guest.socket.fd())}, {"reason", why}});
  // Who closes with input unread takes the answer back.
  std::array<char, 4096> dropped;
  while (recv(guest.socket.fd(), dropped.data(), dropped.size(), MSG_DONTWAIT) > 0) {
  }
  const absl::Status told =
      SendAll(guest.socket.fd(), EncodeMessage(ErrorAnswer(ErrorKind::kMisuse, why)), -1,
              base::Duration::zero());
  if (!told.ok()) log::Info("and was gone before", {{"reason", told.message()}});
}

void ScriptConnections::ReadFrom(const std::shared_ptr<Connection>& connection) {
  std::vector<char> bytes(kReadAtOnce);
  const ssize_t count = recv(connection->socket.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (count <= 0) {
    const base::MutexLock lock(mutex_);
    connection->over = true;
    connection->gone.request_stop();
    changed_.NotifyAll();
    return;
  }
  connection->reader.Append({bytes.data(), static_cast<size_t>(count)});
  while (true) {
    const absl::StatusOr<std::optional<std::string>> text = connection->reader.Next();
    if (!text.ok()) return Fault(connection, text.status());
    if (!text->has_value() || !Take(connection, **text)) return;
  }
}

bool ScriptConnections::Take(const std::shared_ptr<Connection>& connection,
                             const std::string& text) {
  absl::StatusOr<Request> request = ParseRequest(text);
  if (absl::IsInvalidArgument(request.status())) {
    Fault(connection, request.status());
    return false;
  }
  if (request.ok()) {
    absl::Status done;
    const auto* freed = std::get_if<FreeRequest>(&*request);
    const auto* report = std::get_if<ReportRequest>(&*request);
    if (freed != nullptr) done = callbacks_.on_free(*freed);
    if (report != nullptr) done = callbacks_.on_report(*report);
    if (!done.ok()) callbacks_.on_misuse(done);
    if (freed != nullptr || report != nullptr) return true;
  }
  {
    const base::MutexLock lock(mutex_);
    if (!connection->asked) {
      connection->asked = true;
      connection->question = std::move(request);
      changed_.NotifyAll();
      return true;
    }
  }
  Fault(connection, absl::InvalidArgumentError(
                        "a question came before the one before it was answered; the stream is "
                        "read by one thread at a time"));
  return false;
}

void ScriptConnections::Fault(const std::shared_ptr<Connection>& connection,
                              const absl::Status& why) {
  const base::MutexLock lock(mutex_);
  connection->question = why;
  connection->over = true;
  connection->gone.request_stop();
  changed_.NotifyAll();
}

}  // namespace hetero::agent
