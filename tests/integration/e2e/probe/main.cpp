// Knocks at a port from inside the cluster, as somebody would who has stolen or made a certificate.
// It shares no code with the programs that it knocks at and is linked statically, so that it runs
// in any image.
//
//   knock wait                                   does nothing until it is told to end
//   knock tls ADDRESS PORT [FOLDER]              HTTP/2 over TLS, with FOLDER/tls.crt and tls.key
//   knock plain ADDRESS PORT                     HTTP/2 without TLS
//   knock tcp ADDRESS PORT[,PORT...]             connections, nothing more; all at once
//   knock garbage ADDRESS PORT COUNT             connections that send noise
//   knock half-open ADDRESS PORT COUNT SECONDS   connections that stay and say nothing
//
// The first line of the output is "accepted", "refused: WHY", "unreachable: WHY" or a count; of
// several ports "accepted" or "unreachable" when it is so of all.
#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kPatienceSeconds = 10;
constexpr int kTcpPatienceSeconds = 5;  // a SYN is sent three times in it
// The client's preface and an empty SETTINGS frame. A server that lets a client in answers with
// SETTINGS.
constexpr char kHello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
constexpr size_t kHelloSize = sizeof(kHello);  // the closing zero is the frame's last byte
constexpr int kFrameHeader = 9;
constexpr char kSettingsType = 4;

[[noreturn]] void Say(const std::string& what, const std::string& why = "") {
  std::printf("%s%s%s\n", what.c_str(), why.empty() ? "" : ": ", why.c_str());
  std::exit(0);
}

sockaddr_in Address(const char* ip, const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(port)));
  if (inet_pton(AF_INET, ip, &address.sin_addr) != 1) {
    std::fprintf(stderr, "%s is no IPv4 address\n", ip);
    std::exit(2);
  }
  return address;
}

// -1 with errno when there is no connection in time.
int Connect(const sockaddr_in& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno != EINPROGRESS) return -1;
    pollfd wait{fd, POLLOUT, 0};
    int error = ETIMEDOUT;
    if (poll(&wait, 1, kPatienceSeconds * 1000) == 1) {
      socklen_t size = sizeof(error);
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error != 0) {
      close(fd);
      errno = error;
      return -1;
    }
  }
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  const timeval patience{kPatienceSeconds, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  return fd;
}

int MustConnect(const sockaddr_in& address) {
  const int fd = Connect(address);
  if (fd < 0) Say("unreachable", std::strerror(errno));
  return fd;
}

std::string TlsError(const char* otherwise) {
  const unsigned long error = ERR_get_error();
  if (error == 0) return otherwise;
  char text[256];
  ERR_error_string_n(error, text, sizeof(text));
  return text;
}

template <typename Write, typename Read>
void SayHello(Write write, Read read) {
  if (!write(kHello, kHelloSize)) Say("refused", TlsError("it hung up before a word was said"));
  char frame[kFrameHeader];
  for (int have = 0; have < kFrameHeader;) {
    const int got = read(frame + have, kFrameHeader - have);
    if (got <= 0) Say("refused", TlsError(got == 0 ? "it hung up" : "no answer"));
    have += got;
  }
  if (frame[3] != kSettingsType) Say("refused", "the answer is not HTTP/2");
  Say("accepted");
}

void Tls(const sockaddr_in& address, const char* folder) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);  // who the server is, is not the question
  if (folder != nullptr) {
    const std::string path = folder;
    if (SSL_CTX_use_certificate_chain_file(context, (path + "/tls.crt").c_str()) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, (path + "/tls.key").c_str(), SSL_FILETYPE_PEM) != 1) {
      std::fprintf(stderr, "%s: %s\n", folder, TlsError("no certificate").c_str());
      std::exit(2);
    }
  }
  const unsigned char protocols[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context, protocols, sizeof(protocols));
  SSL* tls = SSL_new(context);
  SSL_set_fd(tls, MustConnect(address));
  if (SSL_connect(tls) != 1) Say("refused", TlsError("no handshake"));
  SayHello([&](const char* data,
               size_t size) { return SSL_write(tls, data, size) == static_cast<int>(size); },
           [&](char* data, int size) { return SSL_read(tls, data, size); });
}

void Plain(const sockaddr_in& address) {
  const int fd = MustConnect(address);
  SayHello([&](const char* data,
               size_t size) { return write(fd, data, size) == static_cast<ssize_t>(size); },
           [&](char* data, int size) { return static_cast<int>(read(fd, data, size)); });
}

bool IsConnected(int fd) {
  pollfd ready{fd, POLLOUT, 0};
  int error = ETIMEDOUT;
  socklen_t size = sizeof(error);
  if (poll(&ready, 1, 0) == 1) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0;
}

void Tcp(const char* ip, const std::string& ports) {
  std::vector<int> sockets;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = ports.find(',', begin);
    const sockaddr_in address = Address(ip, ports.substr(begin, end - begin).c_str());
    sockets.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    connect(sockets.back(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  std::vector<bool> connected(sockets.size());  // an error is told once only
  for (int tenths = 0; tenths < 10 * kTcpPatienceSeconds; ++tenths) {
    usleep(100 * 1000);
    for (size_t i = 0; i < sockets.size(); ++i) {
      if (!connected[i] && IsConnected(sockets[i])) connected[i] = true;
    }
    if (std::count(connected.begin(), connected.end(), false) == 0) Say("accepted");
  }
  const auto reached = std::count(connected.begin(), connected.end(), true);
  if (reached == 0) Say("unreachable", "none of " + std::to_string(sockets.size()) + " in time");
  Say("some accepted", std::to_string(reached) + " of " + std::to_string(sockets.size()));
}

void Garbage(const sockaddr_in& address, int count) {
  int sent = 0;
  unsigned int seed = 1;
  std::vector<char> noise(65536);
  for (int i = 0; i < count; ++i) {
    for (char& byte : noise) byte = static_cast<char>(rand_r(&seed));
    const int fd = Connect(address);
    if (fd < 0) continue;
    if (write(fd, noise.data(), noise.size()) > 0) ++sent;
    close(fd);
  }
  Say(std::to_string(sent));
}

void HalfOpen(const sockaddr_in& address, int count, int seconds) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  int held = 0;
  for (int i = 0; i < count; ++i) {
    if (Connect(address) >= 0) ++held;
  }
  std::printf("%d\n", held);
  std::fflush(stdout);
  sleep(static_cast<unsigned int>(seconds));
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "wait") {
    signal(SIGTERM, [](int) { _exit(0); });
    for (;;) pause();
  }
  if (argc < 4) {
    std::fprintf(stderr, "usage: knock wait | tls|plain|tcp|garbage|half-open ADDRESS PORT ...\n");
    return 2;
  }
  if (what == "tcp") Tcp(argv[2], argv[3]);
  const sockaddr_in address = Address(argv[2], argv[3]);
  if (what == "tls") Tls(address, argc > 4 ? argv[4] : nullptr);
  if (what == "plain") Plain(address);
  if (what == "garbage" && argc > 4) Garbage(address, std::atoi(argv[4]));
  if (what == "half-open" && argc > 5) HalfOpen(address, std::atoi(argv[4]), std::atoi(argv[5]));
  return 0;
}
