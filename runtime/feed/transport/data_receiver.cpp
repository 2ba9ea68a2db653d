#include "runtime/feed/transport/data_receiver.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/thread.h"

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

absl::StatusOr<std::unique_ptr<DataReceiver>> DataReceiver::Start(const std::string& peer,
                                                                  DataOffer offer,
                                                                  Callbacks callbacks) {
  HETERO_ASSIGN_OR_RETURN(const Address address, Parse(peer));
  HETERO_ASSIGN_OR_RETURN(std::unique_ptr<DataSocket> socket,
                          DataSocket::Create(address.storage.ss_family));
  return std::unique_ptr<DataReceiver>(new DataReceiver(
      std::move(socket), address.storage, address.size, std::move(offer), std::move(callbacks)));
}

DataReceiver::DataReceiver(std::unique_ptr<DataSocket> socket, const sockaddr_storage& address,
                           socklen_t size, DataOffer offer, Callbacks callbacks)
    : socket_(std::move(socket)), offer_(std::move(offer)), callbacks_(std::move(callbacks)) {
  thread_ = std::jthread([this, address, size] { Run(address, size); });
}

DataReceiver::~DataReceiver() { socket_->Shutdown(); }

absl::Status DataReceiver::Open(const sockaddr_storage& address, socklen_t size, bool* taken) {
  *taken = false;
  HETERO_RETURN_IF_ERROR(socket_->Connect(address, size, kConnectTimeout));
  const absl::Status status = Greet();
  // Who closes it has not taken it up: a worker that has answered breaks the stream as well.
  *taken = !absl::IsUnavailable(status);
  return status;
}

absl::Status DataReceiver::Greet() {
  socket_->SetTimeout(kAnswerTimeout);
  std::array<unsigned char, sizeof offer_.id> id;
  for (size_t i = 0; i < id.size(); ++i) id[i] = static_cast<unsigned char>(offer_.id >> (8 * i));
  HETERO_RETURN_IF_ERROR(
      socket_->Write({{kDataMagic.data(), kDataMagic.size()}, {id.data(), id.size()}}));
  if (!offer_.key.empty()) {
    HETERO_RETURN_IF_ERROR(socket_->Secure(offer_.key, DataSocket::Side::kTrainer));
  }
  socket_->ReadAhead();
  socket_->SetMostBytes(callbacks_.most_bytes);
  std::array<char, kDataMagic.size()> answer;
  HETERO_RETURN_IF_ERROR(socket_->Read(answer.data(), answer.size()));
  if (answer != kDataMagic) return absl::DataLossError("the data connection begins with noise");
  socket_->SetTimeout(base::Duration::zero());  // gRPC's pings find out whether the worker is there
  return absl::OkStatus();
}

void DataReceiver::Run(const sockaddr_storage& address, socklen_t size) {
  base::SetThreadName("feed-data");
  bool taken = false;
  absl::Status status = Open(address, size, &taken);
  if (status.ok()) callbacks_.on_answer();
  while (status.ok()) {
    absl::StatusOr<Frame> frame = ReadFrame(callbacks_.open_memory, socket_.get());
    status = frame.status();
    if (!frame.ok()) break;
    callbacks_.on_frame(*std::move(frame));
  }
  callbacks_.on_end(status, taken);
}

}  // namespace hetero::feed
