#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "runtime/feed/transport/data_connections.h"
#include "tests/fuzz/fuzz.h"

// What comes first on a worker's data port, before anybody has shown who he is: whether the
// connection was offered with a key, then the bytes of the one who dials.
namespace hetero::feed {
namespace {

constexpr uint64_t kOffered = 0x0123456789abcdef;
constexpr size_t kGreetingBytes = kDataMagic.size() + sizeof(uint64_t);

bool NamesTheOffer(std::span<const uint8_t> bytes) {
  if (bytes.size() < kGreetingBytes) return false;
  uint64_t id = 0;
  for (size_t i = 0; i < sizeof id; ++i) id |= uint64_t{bytes[kDataMagic.size() + i]} << (8 * i);
  return id == kOffered;
}

std::string ReadToEnd(int fd) {
  std::string answer;
  std::array<char, 512> part;
  while (true) {
    const ssize_t size = read(fd, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;  // libFuzzer's own timer
    if (size <= 0) return answer;
    answer.append(part.data(), static_cast<size_t>(size));
  }
}

void Greet(std::span<const uint8_t> bytes, bool with_key) {
  std::array<int, 2> ends;
  fuzz::Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "no sockets");
  std::atomic<bool> opened = false;
  std::string answer;
  {
    DataConnections connections(base::Clock::Real());
    connections.Expect({.id = kOffered, .key = with_key ? NewDataKey() : ""},
                       {.on_open =
                            [&](const std::shared_ptr<DataConnection>& connection) {
                              opened = true;
                              connection->Close();
                            },
                        .on_broken = [](const absl::Status&) {}});
    const ssize_t sent = send(ends[0], bytes.data(), bytes.size(), MSG_NOSIGNAL);
    fuzz::Require(sent == static_cast<ssize_t>(bytes.size()), "the input does not fit the socket");
    shutdown(ends[0], SHUT_WR);
    connections.Accept(ends[1]);
    // One that names something else waits for an offer to come; only the end of it all ends that.
    if (NamesTheOffer(bytes) || bytes.size() < kGreetingBytes) answer = ReadToEnd(ends[0]);
  }
  answer += ReadToEnd(ends[0]);
  close(ends[0]);
  const std::string_view magic(kDataMagic.data(), kDataMagic.size());
  const bool expected = NamesTheOffer(bytes) && !with_key;
  fuzz::Require(opened == expected, expected ? "who names an offer is refused"
                                             : "somebody is let in who knows no offer or key");
  fuzz::Require((answer == magic) == expected, "the wrong answer to a greeting");
  fuzz::Require(expected || answer.find(magic) == std::string::npos, "a stranger is answered");
}

}  // namespace
}  // namespace hetero::feed

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hetero::fuzz::Silence();
  hetero::fuzz::Input input(data, size);
  const bool with_key = (input.Byte() & 1) != 0;
  hetero::feed::Greet(input.Rest(), with_key);
  return 0;
}
