#include "runtime/feed/transport/tls_records.h"

#include <array>
#include <cstring>

#include "tests/fuzz/fuzz.h"

// Records of TLS from somebody who has the key, or who changes bytes on the way: of which kind each
// is, what is in it, how it is damaged, and in what pieces all of them come. What the reader hands
// out is what was sealed as data, in order, up to the first record that is no good, and it ends.
namespace hetero::feed {
namespace {

constexpr uint8_t kData = 23;
constexpr char kUpdate[] = {24, 0, 0, 1, 0};

RecordKey Key(AesGcm::Direction direction) {
  auto key = RecordKey::Of(Secret(std::string(kTlsSecretBytes, 'k')), direction);
  fuzz::Require(key.ok(), "no key");
  return *std::move(key);
}

std::string Sealed(RecordKey& key, uint8_t type, const std::string& message) {
  const size_t size = message.size() + 1 + AesGcm::kTagBytes;
  std::string record = {23, 3, 3, static_cast<char>(size >> 8), static_cast<char>(size)};
  const size_t begin = record.size();
  const std::string inner = message + static_cast<char>(type);
  AesGcm& cipher = key.cipher();
  cipher.Begin(key.NextNonce(), reinterpret_cast<const uint8_t*>(record.data()), begin);
  record.append(inner.size(), '\0');
  cipher.Update(reinterpret_cast<const uint8_t*>(inner.data()),
                reinterpret_cast<uint8_t*>(record.data()) + begin, inner.size());
  AesGcm::Tag tag{};
  fuzz::Require(cipher.Seal(&tag), "not sealed");
  return record.append(reinterpret_cast<const char*>(tag.data()), tag.size());
}

}  // namespace
}  // namespace hetero::feed

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero::feed;
  using hetero::fuzz::Require;
  hetero::fuzz::Input input(data, size);
  const size_t step = input.Short() + size_t{1}, ask = input.Short() + size_t{1};
  RecordKey key = Key(AesGcm::Direction::kSeal);
  std::string stream, expected;
  bool good = true;
  while (!input.empty()) {
    // Mostly data.
    const uint8_t choice = input.Byte();
    const std::array<uint8_t, 8> types = {kData, kData, kData, kData, kData, 21, 22, choice};
    const uint8_t type = types[choice % types.size()];
    const size_t repeated = choice >= 128 ? 40 : 1;
    std::string message;
    for (const std::string part = input.Text(input.Byte());
         message.size() < part.size() * repeated;)
      message += part;
    std::string record = Sealed(key, type, message);
    const uint8_t damage = input.Byte();
    const bool damaged = damage >= 250;
    if (damaged) record[size_t{input.Short()} % record.size()] ^= 0x20;
    stream += record;
    const bool update =
        type == 22 && key.records() > 1 && message == std::string(kUpdate, sizeof kUpdate);
    if (update) Require(key.Update().ok(), "no next key");
    good = good && !damaged && ((type == kData && !message.empty()) || update);
    if (good && type == kData) expected += message;
  }
  RecordReader reader(Key(AesGcm::Direction::kOpen));
  std::string got, room(ask, '\0');
  size_t given = 0;
  while (true) {
    const auto some =
        reader.Read(reinterpret_cast<uint8_t*>(room.data()), ask,
                    [&](uint8_t* to, size_t most) -> absl::StatusOr<size_t> {
                      Require(most > 0, "no room to receive");
                      const size_t more = std::min({step, most, stream.size() - given});
                      if (more == 0) return absl::UnavailableError("the end");
                      std::memcpy(to, stream.data() + given, more);
                      given += more;
                      return more;
                    });
    if (!some.ok()) {
      Require(!good || some.status().message() == "the end", "good records are refused");
      break;
    }
    Require(*some > 0 && *some <= ask, "a size that was not asked for");
    got.append(room, 0, *some);
  }
  Require(got == expected, "other bytes than were sealed");
  return 0;
}
