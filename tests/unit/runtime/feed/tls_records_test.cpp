// Records of TLS 1.3 against those of OpenSSL, which is on the other side of the socket, and
// against whoever changes them on the way.
#include "runtime/feed/transport/tls_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include "runtime/feed/transport/data_socket.h"
#include "runtime/feed/transport/tls_handshake.h"

namespace hetero::feed {
namespace {

using ::testing::HasSubstr;

std::string Pattern(size_t size, uint32_t seed = 1) {
  std::string text(size, '\0');
  for (char& byte : text) byte = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return text;
}

Secret SecretOf(char fill) { return Secret(std::string(kTlsSecretBytes, fill)); }

RecordKey KeyOf(Secret secret, AesGcm::Direction direction) {
  auto key = RecordKey::Of(std::move(secret), direction);
  EXPECT_TRUE(key.ok()) << key.status();
  return *std::move(key);
}

// What a writer with the secret "a..." makes of it.
std::string Sealed(RecordWriter& writer, const std::vector<std::string>& parts) {
  std::string sealed;
  std::vector<WirePart> pieces;
  for (const std::string& part : parts) pieces.push_back({part.data(), part.size()});
  writer.Begin(pieces);
  while (true) {
    const absl::StatusOr<WirePart> next = writer.Next();
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok() || next->size == 0) return sealed;
    sealed.append(static_cast<const char*>(next->data), next->size);
  }
}

// Reads what comes in pieces of `step` bytes, `ask` of them at a time.
class Opened {
 public:
  Opened(const std::string& sealed, size_t step, size_t ask,
         RecordKey key = KeyOf(SecretOf('a'), AesGcm::Direction::kOpen)) {
    RecordReader reader(std::move(key));
    std::string room(ask, '\0');
    size_t given = 0;
    while (true) {
      const auto got =
          reader.Read(reinterpret_cast<uint8_t*>(room.data()), ask,
                      [&](uint8_t* to, size_t most) -> absl::StatusOr<size_t> {
                        const size_t some = std::min({step, most, sealed.size() - given});
                        if (some == 0) return absl::UnavailableError("the end");
                        std::copy_n(sealed.data() + given, some, reinterpret_cast<char*>(to));
                        given += some;
                        return some;
                      });
      status = got.status();
      if (!got.ok()) return;
      EXPECT_GT(*got, 0u);
      EXPECT_LE(*got, ask);
      text.append(room, 0, *got);
    }
  }
  std::string text;
  absl::Status status;
};

RecordWriter Writer(uint64_t records_of_key = kRecordsOfKey) {
  return RecordWriter(KeyOf(SecretOf('a'), AesGcm::Direction::kSeal), records_of_key);
}

TEST(TlsRecordsTest, WhatWasSealedIsOpenedInWhateverPieces) {
  RecordWriter writer = Writer();
  const std::vector<std::string> parts = {
      "", Pattern(1),  Pattern(kRecordBytes - 1), Pattern(100'000),
      "", Pattern(17), Pattern(300'000)};
  std::string all;
  for (const std::string& part : parts) all += part;
  const std::string sealed = Sealed(writer, parts);
  for (const size_t step : {size_t{1}, size_t{7}, size_t{4096}, size_t{1} << 20}) {
    for (const size_t ask : {size_t{1}, size_t{100}, kRecordBytes, size_t{1} << 20}) {
      const Opened opened(sealed, step, ask);
      EXPECT_EQ(opened.text.size(), all.size());
      EXPECT_TRUE(opened.text == all) << step << " " << ask;
      EXPECT_EQ(opened.status.message(), "the end");
    }
  }
}

TEST(TlsRecordsTest, BothLibrariesMakeTheSame) {
  const AesGcm::Key key = {1, 2, 3};
  const AesGcm::Nonce nonce = {4, 5, 6};
  const std::string plain = Pattern(10'000);
  const uint8_t associated[] = {23, 3, 3, 1, 1};
  std::vector<std::string> texts;
  std::vector<AesGcm::Tag> tags;
  for (const auto& make : {&AesGcm::Create, &AesGcm::CreateOfOpenSsl}) {
    const auto cipher = make(key, AesGcm::Direction::kSeal);
    ASSERT_NE(cipher, nullptr);
    std::string out(plain.size(), '\0');
    cipher->Begin(nonce, associated, sizeof associated);
    for (size_t at = 0, size = 1; at < plain.size(); at += size, size = size * 3 + 1) {
      cipher->Update(reinterpret_cast<const uint8_t*>(plain.data()) + at,
                     reinterpret_cast<uint8_t*>(out.data()) + at,
                     std::min(size, plain.size() - at));
    }
    AesGcm::Tag tag{};
    ASSERT_TRUE(cipher->Seal(&tag));
    texts.push_back(out);
    tags.push_back(tag);
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(tags[0], tags[1]);
  for (const auto& make : {&AesGcm::Create, &AesGcm::CreateOfOpenSsl}) {
    const auto cipher = make(key, AesGcm::Direction::kOpen);
    std::string out(plain.size(), '\0');
    for (const bool damaged : {false, true, false}) {
      AesGcm::Tag tag = tags[0];
      if (damaged) tag[15] ^= 1;
      cipher->Begin(nonce, associated, sizeof associated);
      cipher->Update(reinterpret_cast<const uint8_t*>(texts[0].data()),
                     reinterpret_cast<uint8_t*>(out.data()), out.size());
      EXPECT_EQ(cipher->Open(tag), !damaged);
      EXPECT_EQ(out, plain);
    }
  }
}

TEST(TlsRecordsTest, KeysChangeInTime) {
  RecordWriter writer = Writer(3);
  const std::string text = Pattern(20 * kRecordBytes);
  const std::string sealed = Sealed(writer, {text});
  // A record more for each of six changes.
  EXPECT_EQ(sealed.size(), text.size() + 20 * 22 + 6 * 27);
  EXPECT_TRUE(Opened(sealed, 5000, 50'000).text == text);
}

TEST(TlsRecordsTest, WhatWasChangedOnTheWayIsNotBelieved) {
  RecordWriter writer = Writer();
  const std::string first = Sealed(writer, {Pattern(100, 1)});
  const std::string second = Sealed(writer, {Pattern(200, 2)});
  const std::string third = Sealed(writer, {Pattern(300, 3)});
  const auto expect_broken = [&](const std::string& sealed, size_t believed, const char* why) {
    const Opened opened(sealed, 1 << 20, 1 << 20);
    EXPECT_EQ(opened.text.size(), believed) << why;
    EXPECT_TRUE(absl::IsUnavailable(opened.status)) << opened.status;
    EXPECT_THAT(std::string(opened.status.message()), HasSubstr(why));
  };
  EXPECT_EQ(Opened(first + second + third, 1 << 20, 1 << 20).text.size(), 600u);
  for (size_t at = 0; at < second.size(); ++at) {
    std::string damaged = second;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const Opened opened(first + damaged + third, 1 << 20, 1 << 20);
    EXPECT_EQ(opened.text, Pattern(100, 1)) << at;
    EXPECT_FALSE(opened.status.ok());
  }
  expect_broken(first + third, 100, "bad record mac");           // one is missing
  expect_broken(second + first, 0, "bad record mac");            // in another order
  expect_broken(first + first, 100, "bad record mac");           // twice
  expect_broken(first + second.substr(0, 100), 100, "the end");  // the rest does not come
  expect_broken(first + "GET / HTTP/1.1\r\n", 100, "no record");
  expect_broken(first + std::string("\x17\x03\x03\x40\x12", 5), 100, "impossible size");
  expect_broken(first + std::string("\x17\x03\x03\x00\x10", 5), 100, "impossible size");
  // From somebody who has the key: records without an end that say nothing.
  const auto sealed_as = [](uint8_t type, const std::string& message) {
    RecordKey key = KeyOf(SecretOf('a'), AesGcm::Direction::kSeal);
    const size_t size = message.size() + 17;
    std::string record = {23, 3, 3, static_cast<char>(size >> 8), static_cast<char>(size)};
    std::string inner = message + static_cast<char>(type);
    key.cipher().Begin(key.NextNonce(), reinterpret_cast<const uint8_t*>(record.data()), 5);
    key.cipher().Update(reinterpret_cast<const uint8_t*>(inner.data()),
                        reinterpret_cast<uint8_t*>(inner.data()), inner.size());
    AesGcm::Tag tag{};
    EXPECT_TRUE(key.cipher().Seal(&tag));
    return record + inner + std::string(tag.begin(), tag.end());
  };
  expect_broken(sealed_as(23, ""), 0, "an empty record");
  expect_broken(sealed_as(22, {24, 0, 0, 1, 0}), 0, "unexpected message");  // at once
  expect_broken(sealed_as(21, {1, 0}), 0, "the other side closed");
  expect_broken(sealed_as(21, {2, 20}), 0, "says alert 20");
  expect_broken(sealed_as(23, std::string("x\0", 2)).substr(0, 20), 0, "the end");
  expect_broken(sealed_as(0, "padded"), 0, "unexpected message");
  const Opened other(first, 1 << 20, 1 << 20, KeyOf(SecretOf('b'), AesGcm::Direction::kOpen));
  EXPECT_THAT(std::string(other.status.message()), HasSubstr("bad record mac"));
  EXPECT_EQ(other.text, "");
}

// OpenSSL on one side of a socket, by its own records.
class OpenSslPeer {
 public:
  OpenSslPeer(int fd, const std::string& key, bool client) : fd_(fd), key_(key) {
    context_ = SSL_CTX_new(TLS_method());
    SSL_CTX_set_ciphersuites(context_, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_num_tickets(context_, 0);
    SSL_CTX_set_psk_use_session_callback(
        context_,
        [](SSL* tls, const EVP_MD*, const unsigned char** id, size_t* size, SSL_SESSION** session) {
          *id = reinterpret_cast<const unsigned char*>("hetero-data");
          *size = sizeof "hetero-data";
          return Session(tls, session);
        });
    SSL_CTX_set_psk_find_session_callback(
        context_, [](SSL* tls, const unsigned char*, size_t, SSL_SESSION** session) {
          return Session(tls, session);
        });
    tls_ = SSL_new(context_);
    SSL_set_app_data(tls_, this);
    SSL_set_fd(tls_, fd);
    done_ = client ? SSL_connect(tls_) : SSL_accept(tls_);
  }
  ~OpenSslPeer() {
    SSL_free(tls_);
    SSL_CTX_free(context_);
    close(fd_);
  }
  int done() const { return done_; }
  SSL* tls() { return tls_; }
  std::string Read(size_t size) {
    std::string text(size, '\0');
    for (size_t at = 0, got = 0; at < size; at += got) {
      if (SSL_read_ex(tls_, text.data() + at, size - at, &got) != 1) return text.substr(0, at);
    }
    return text;
  }
  bool Write(const std::string& text) {
    size_t sent = 0;
    return SSL_write_ex(tls_, text.data(), text.size(), &sent) == 1 && sent == text.size();
  }

 private:
  static int Session(SSL* tls, SSL_SESSION** session) {
    const unsigned char id[] = {0x13, 0x01};
    const std::string& key = static_cast<OpenSslPeer*>(SSL_get_app_data(tls))->key_;
    *session = SSL_SESSION_new();
    SSL_SESSION_set1_master_key(*session, reinterpret_cast<const unsigned char*>(key.data()),
                                key.size());
    SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(tls, id));
    SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION);
    return 1;
  }

  const int fd_;
  const std::string key_;
  SSL_CTX* context_;
  SSL* tls_;
  int done_ = 0;
};

class TlsPeersTest : public ::testing::TestWithParam<TlsSide> {
 protected:
  // `talk` has OpenSSL's end, on a thread of its own.
  void Connect(const std::function<void(OpenSslPeer&)>& talk,
               const std::string& their_key = std::string(kDataKeyBytes, 'k')) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    socket_ = std::make_unique<DataSocket>(ends[0]);
    peer_ = std::async(std::launch::async, [this, talk, their_key, fd = ends[1]] {
      OpenSslPeer peer(fd, their_key, GetParam() == TlsSide::kWorker);
      if (peer.done() == 1) talk(peer);
    });
    secured_ = socket_->Secure(std::string(kDataKeyBytes, 'k'), GetParam());
    while (secured_.ok()) {
      const absl::StatusOr<TlsHandshake::State> state = socket_->ShakeHands();
      secured_ = state.status();
      if (!state.ok() || *state == TlsHandshake::State::kDone) break;
      Await(*state == TlsHandshake::State::kReads ? POLLIN : POLLOUT);
    }
    socket_->ReadAhead();
  }
  void Await(short events) {
    pollfd ready = {.fd = socket_->fd(), .events = events, .revents = 0};
    ASSERT_EQ(poll(&ready, 1, 30'000), 1);
    socket_->SetReadable();
  }
  // Sends `there` while it reads as many bytes as there are in `back`.
  std::string Talk(const std::string& there, size_t back) {
    socket_->Write({{there.data(), there.size() / 3},
                    {there.data() + there.size() / 3, there.size() - there.size() / 3}});
    std::string text(back, '\0');
    size_t have = 0;
    bool sent = false;
    while (have < back || !sent) {
      if (!sent) {
        const absl::StatusOr<bool> flushed = socket_->Flush();
        if (!flushed.ok()) return flushed.status().ToString();
        sent = *flushed;
      }
      const absl::StatusOr<size_t> got =
          have == back ? 0 : socket_->Read(text.data() + have, back - have);
      if (!got.ok()) return got.status().ToString();
      have += *got;
      if (*got == 0 && (have < back || !sent)) {
        Await(static_cast<short>((have < back ? POLLIN : 0) | (sent ? 0 : POLLOUT)));
      }
    }
    return text;
  }
  std::string Read(size_t size) { return Talk("", size); }

  std::unique_ptr<DataSocket> socket_;
  std::future<void> peer_;
  absl::Status secured_;
};

TEST_P(TlsPeersTest, UnderstandOpenSslAndAreUnderstoodByIt) {
  const std::string there = Pattern(1'000'003, 7), back = Pattern(777'777, 8);
  std::string arrived;
  Connect([&](OpenSslPeer& peer) {
    // At once: what follows the handshake may come with it.
    EXPECT_TRUE(peer.Write(back));
    arrived = peer.Read(there.size());
    EXPECT_EQ(SSL_key_update(peer.tls(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
    EXPECT_TRUE(peer.Write("with the next key"));
    SSL_shutdown(peer.tls());
  });
  ASSERT_TRUE(secured_.ok()) << secured_;
  EXPECT_TRUE(Talk(there, back.size()) == back);
  EXPECT_EQ(Read(17), "with the next key");
  EXPECT_THAT(Read(1), HasSubstr("the other side closed"));
  peer_.get();
  EXPECT_TRUE(arrived == there);
}

TEST_P(TlsPeersTest, OfAnotherKeyAreNotSpokenTo) {
  Connect([](OpenSslPeer&) { ADD_FAILURE() << "it took the key of another connection"; },
          std::string(kDataKeyBytes, 'x'));
  EXPECT_TRUE(absl::IsUnavailable(secured_)) << secured_;
  socket_.reset();
  peer_.get();
}

INSTANTIATE_TEST_SUITE_P(Both, TlsPeersTest, ::testing::Values(TlsSide::kTrainer, TlsSide::kWorker),
                         [](const auto& info) {
                           return info.param == TlsSide::kTrainer ? "Trainer" : "Worker";
                         });

}  // namespace
}  // namespace hetero::feed
