#include "runtime/feed/transport/data_receiver.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "runtime/feed/wire/frame_reader.h"

namespace hetero::feed {
namespace {

constexpr base::Duration kConnectTimeout = std::chrono::seconds(5);
constexpr base::Duration kAnswerTimeout = std::chrono::seconds(15);  // more than the worker takes

struct Address {
  sockaddr_storage storage = {};
  socklen_t size = 0;
};

absl::StatusOr<Address> Parse(const std::string& peer) {
  std::string text = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  const size_t scheme = text.find(':'), colon = text.rfind(':');
  int port = 0;
  const auto bad = [&peer] {
    return absl::InvalidArgumentError(absl::StrCat("no IP address: ", peer));
  };
  if (scheme == colon || !absl::SimpleAtoi(text.substr(colon + 1), &port)) return bad();
  const std::string kind = text.substr(0, scheme);
  std::string host = text.substr(scheme + 1, colon - scheme - 1);
  Address address;
  if (kind == "ipv4") {
    auto* to = reinterpret_cast<sockaddr_in*>(&address.storage);
    to->sin_family = AF_INET;
    to->sin_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof *to;
    if (inet_pton(AF_INET, host.c_str(), &to->sin_addr) != 1) return bad();
    return address;
  }
  if (kind != "ipv6" || host.size() < 2) return bad();
  auto* to = reinterpret_cast<sockaddr_in6*>(&address.storage);
  to->sin6_family = AF_INET6;
  to->sin6_port = htons(static_cast<uint16_t>(port));
  address.size = sizeof *to;
  if (inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &to->sin6_addr) != 1)
    return bad();
  return address;
}

}  // namespace

class DataReceiver::Connection : public ServedSocket {
 public:
  Connection(std::unique_ptr<DataSocket> socket, DataOffer offer, Callbacks callbacks)
      : socket_(std::move(socket)),
        offer_(std::move(offer)),
        callbacks_(std::move(callbacks)),
        reader_(callbacks_.open_memory),
        deadline_(base::Clock::Real().Now() + kConnectTimeout) {}

  int fd() const override { return socket_->fd(); }
  Wait Serve(Ready ready) override;
  void Shutdown() { socket_->Shutdown(); }

 private:
  enum class Stage { kDialling, kGreeting, kHandshake, kAnswer, kFrames };
  absl::StatusOr<Wait> GoOnOrFail(Ready ready);
  absl::StatusOr<Wait> GoOn(Ready ready);
  absl::StatusOr<Wait> Greet();
  absl::StatusOr<Wait> ShakeHands();
  absl::StatusOr<Wait> ReadAnswer();
  absl::StatusOr<Wait> ReadFrames();
  absl::StatusOr<std::optional<Frame>> TakeOrFail(size_t size);
  // What is half told of a batch cannot be taken back: without memory for that the process ends.
  void Tell(Frame frame) noexcept { callbacks_.on_frame(std::move(frame)); }
  // Whether the worker may have taken the connection up that ends like this.
  bool Taken(const absl::Status& status) const;

  const std::unique_ptr<DataSocket> socket_;
  const DataOffer offer_;
  const Callbacks callbacks_;
  FrameReader reader_;
  base::Instant deadline_;  // of all that comes before frames
  Stage stage_ = Stage::kDialling;
  std::string greeting_, answer_;
};

ServedSocket::Wait DataReceiver::Connection::Serve(Ready ready) {
  if (ready.read) socket_->SetReadable();
  absl::StatusOr<Wait> wait = GoOnOrFail(ready);
  if (wait.ok() && stage_ != Stage::kFrames) {
    wait->until = deadline_;
    if (base::Clock::Real().Now() >= deadline_) {
      wait = absl::DeadlineExceededError(stage_ == Stage::kDialling
                                             ? "connect: no answer in time"
                                             : "data connection: no answer in time");
    }
  }
  if (wait.ok()) return *wait;
  socket_->Shutdown();
  callbacks_.on_end(wait.status(), Taken(wait.status()));
  return {.over = true};
}

bool DataReceiver::Connection::Taken(const absl::Status& status) const {
  if (stage_ == Stage::kDialling) return false;
  // Who closes it has not taken it up: a worker that has answered breaks the stream as well.
  return stage_ == Stage::kFrames || !absl::IsUnavailable(status);
}

absl::StatusOr<ServedSocket::Wait> DataReceiver::Connection::GoOnOrFail(Ready ready) {
  try {
    return GoOn(ready);
  } catch (const std::bad_alloc&) {  // the thread has others to serve
    return absl::ResourceExhaustedError("no memory for what a data connection carries");
  }
}

absl::StatusOr<ServedSocket::Wait> DataReceiver::Connection::GoOn(Ready ready) {
  switch (stage_) {
    case Stage::kDialling:
      if (!ready.write) return Wait{.write = true};
      HETERO_RETURN_IF_ERROR(socket_->Connected());
      deadline_ = base::Clock::Real().Now() + kAnswerTimeout;
      greeting_.assign(kDataMagic.data(), kDataMagic.size());
      for (size_t i = 0; i < sizeof offer_.id; ++i) {
        greeting_.push_back(static_cast<char>(offer_.id >> (8 * i)));
      }
      socket_->Write({{greeting_.data(), greeting_.size()}});
      stage_ = Stage::kGreeting;
      return Greet();
    case Stage::kGreeting:
      return Greet();
    case Stage::kHandshake:
      return ShakeHands();
    case Stage::kAnswer:
      return ReadAnswer();
    case Stage::kFrames:
      return ReadFrames();
  }
  __builtin_unreachable();
}

absl::StatusOr<ServedSocket::Wait> DataReceiver::Connection::Greet() {
  HETERO_ASSIGN_OR_RETURN(const bool sent, socket_->Flush());
  if (!sent) return Wait{.write = true};
  if (offer_.key.empty()) {
    socket_->ReadAhead();
    stage_ = Stage::kAnswer;
    return ReadAnswer();
  }
  HETERO_RETURN_IF_ERROR(socket_->Secure(offer_.key, TlsSide::kTrainer));
  stage_ = Stage::kHandshake;
  return ShakeHands();
}

absl::StatusOr<ServedSocket::Wait> DataReceiver::Connection::ShakeHands() {
  HETERO_ASSIGN_OR_RETURN(const TlsHandshake::State state, socket_->ShakeHands());
  if (state == TlsHandshake::State::kReads) return Wait{.read = true};
  if (state == TlsHandshake::State::kWrites) return Wait{.write = true};
  stage_ = Stage::kAnswer;
  return ReadAnswer();
}

absl::StatusOr<ServedSocket::Wait> DataReceiver::Connection::ReadAnswer() {
  while (answer_.size() < kDataMagic.size()) {
    const size_t had = answer_.size();
    answer_.resize(kDataMagic.size());
    const absl::StatusOr<size_t> got = socket_->Read(answer_.data() + had, answer_.size() - had);
    answer_.resize(had + (got.ok() ? *got : 0));
    HETERO_RETURN_IF_ERROR(got.status());
    if (*got == 0) return Wait{.read = true};
  }
  if (!std::equal(answer_.begin(), answer_.end(), kDataMagic.begin())) {
    return absl::DataLossError("the data connection begins with noise");
  }
  // From here on gRPC's pings find out whether the worker is there.
  stage_ = Stage::kFrames;
  callbacks_.on_answer();
  return ReadFrames();
}

absl::StatusOr<ServedSocket::Wait> DataReceiver::Connection::ReadFrames() {
  for (size_t bytes = 0; bytes < kTurnBytes;) {
    const FrameReader::Room room = reader_.room();
    HETERO_ASSIGN_OR_RETURN(const size_t got, socket_->Read(room.to, room.size));
    if (got == 0) return Wait{.read = true};
    bytes += got;
    HETERO_ASSIGN_OR_RETURN(std::optional<Frame> frame, TakeOrFail(got));
    if (frame) Tell(*std::move(frame));
  }
  return Wait{.read = true, .again = true};
}

absl::StatusOr<std::optional<Frame>> DataReceiver::Connection::TakeOrFail(size_t size) {
  try {
    return reader_.Take(size, callbacks_.most_bytes);
  } catch (const std::bad_alloc&) {
    return reader_.FailForMemory([this](Frame failed) { Tell(std::move(failed)); });
  }
}

absl::StatusOr<std::unique_ptr<DataReceiver>> DataReceiver::Start(const std::string& peer,
                                                                  DataOffer offer,
                                                                  Callbacks callbacks,
                                                                  SocketThreads& threads) {
  HETERO_ASSIGN_OR_RETURN(const Address address, Parse(peer));
  HETERO_ASSIGN_OR_RETURN(std::unique_ptr<DataSocket> socket,
                          DataSocket::Create(address.storage.ss_family));
  HETERO_RETURN_IF_ERROR(socket->Connect(address.storage, address.size));
  auto connection =
      std::make_shared<Connection>(std::move(socket), std::move(offer), std::move(callbacks));
  if (!threads.Add(connection)) {
    return absl::UnavailableError("the system has no descriptor or thread left for it");
  }
  return std::unique_ptr<DataReceiver>(new DataReceiver(std::move(connection)));
}

DataReceiver::DataReceiver(std::shared_ptr<Connection> connection)
    : connection_(std::move(connection)) {}

DataReceiver::~DataReceiver() {
  SocketThreads::Remove(*connection_);
  connection_->Shutdown();  // a child process may have the descriptor, too
}

}  // namespace hetero::feed
