#include "runtime/job/stream_digest.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <cstring>
#include <set>
#include <vector>

#include "runtime/job/sip_hash.h"

namespace hetero::job {
namespace {

// OpenSSL's SipHash-2-4 with 16 bytes of output.
Hash128 OpenSslSipHash(uint64_t key_low, uint64_t key_high, const std::vector<uint64_t>& words) {
  EVP_MAC* mac = EVP_MAC_fetch(nullptr, "SIPHASH", nullptr);
  EVP_MAC_CTX* context = EVP_MAC_CTX_new(mac);
  const uint64_t key[] = {key_low, key_high};
  unsigned char output[16];
  size_t length = 0;
  EVP_MAC_init(context, reinterpret_cast<const unsigned char*>(key), sizeof key, nullptr);
  EVP_MAC_update(context, reinterpret_cast<const unsigned char*>(words.data()), words.size() * 8);
  EVP_MAC_final(context, output, &length, sizeof output);
  EVP_MAC_CTX_free(context);
  EVP_MAC_free(mac);
  EXPECT_EQ(length, sizeof output);
  Hash128 hash;
  std::memcpy(&hash.low, output, 8);
  std::memcpy(&hash.high, output + 8, 8);
  return hash;
}

TEST(SipHashTest, EqualsOpenSsl) {
  std::vector<uint64_t> words;
  for (uint64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(SipHash128(i * 0x1234567890ABCDEF, ~i, words),
              OpenSslSipHash(i * 0x1234567890ABCDEF, ~i, words));
    words.push_back(i * i * 0xFEDCBA9876543211);
  }
}

struct Sample {
  int64_t epoch, step, slot, id;
  uint32_t crc;
};

StreamDigest Digest(const std::vector<Sample>& samples, uint64_t seed = 1) {
  StreamDigest digest;
  for (const Sample& s : samples) digest.Add(seed, s.epoch, s.step, s.slot, s.id, s.crc);
  return digest;
}

TEST(StreamDigestTest, DoesNotDependOnOrderOrGrouping) {
  const std::vector<Sample> samples = {{0, 0, 0, 5, 50}, {0, 0, 1, 6, 60}, {0, 1, 2, 7, 70}};
  const StreamDigest whole = Digest(samples);
  EXPECT_EQ(Digest({samples[2], samples[0], samples[1]}), whole);
  StreamDigest parts = Digest({samples[1]});
  parts += Digest({samples[2], samples[0]});
  EXPECT_EQ(parts, whole);
}

TEST(StreamDigestTest, EveryArgumentMatters) {
  const std::set<std::string> digests = {
      Digest({{1, 2, 3, 4, 5}}).ToHex(),    Digest({{0, 2, 3, 4, 5}}).ToHex(),
      Digest({{1, 3, 3, 4, 5}}).ToHex(),    Digest({{1, 2, 4, 4, 5}}).ToHex(),
      Digest({{1, 2, 3, 5, 5}}).ToHex(),    Digest({{1, 2, 3, 4, 6}}).ToHex(),
      Digest({{1, 2, 3, 4, 5}}, 2).ToHex(), Digest({}).ToHex()};
  EXPECT_EQ(digests.size(), 8u);
}

TEST(StreamDigestTest, SeesMissingRepeatedAndSwappedSamples) {
  const Sample a{0, 0, 0, 5, 50}, b{0, 0, 1, 6, 60};
  const StreamDigest right = Digest({a, b});
  EXPECT_NE(Digest({a}), right);
  EXPECT_NE(Digest({a, b, b}), right);
  EXPECT_NE(Digest({{0, 0, 0, 6, 60}, {0, 0, 1, 5, 50}}), right);
}

TEST(StreamDigestTest, AddsWithCarry) {
  StreamDigest digest(1, ~uint64_t{0});
  digest += StreamDigest(2, 3);
  EXPECT_EQ(digest, StreamDigest(4, 2));
}

TEST(StreamDigestTest, PrintsThirtyTwoDigits) {
  EXPECT_EQ(StreamDigest(0xAB, 1).ToHex(), "00000000000000ab0000000000000001");
  EXPECT_EQ(StreamDigest().ToHex(), std::string(32, '0'));
}

}  // namespace
}  // namespace hetero::job
