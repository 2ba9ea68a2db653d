#include "base/socket_address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hetero::base {
namespace {

TEST(SocketAddressTest, BothSidesNameBothAddresses) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, generic, size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, generic, &size), 0);
  const int dialled = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(PeerAddress(dialled), "") << "not yet";
  ASSERT_EQ(connect(dialled, generic, size), 0);
  const int accepted = accept(listener, nullptr, nullptr);
  EXPECT_EQ(PeerAddress(dialled), "127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  EXPECT_EQ(OwnAddress(accepted), PeerAddress(dialled));
  EXPECT_EQ(PeerAddress(accepted), OwnAddress(dialled));
  for (const int socket : {listener, dialled, accepted}) close(socket);
}

TEST(SocketAddressTest, WhatIsNoTcpSocketHasNone) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  EXPECT_EQ(PeerAddress(ends[0]), "");
  EXPECT_EQ(PeerAddress(-1), "");
  for (const int end : ends) close(end);
}

}  // namespace
}  // namespace hetero::base
