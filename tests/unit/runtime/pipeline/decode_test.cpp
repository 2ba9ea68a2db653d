#include "runtime/pipeline/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "tests/unit/runtime/pipeline/fixtures.h"

namespace hetero::pipeline {
namespace {

using testing::HasSubstr;

void ExpectDataLoss(const absl::Status& status, const std::string& part) {
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

std::vector<uint8_t> Text() {
  const std::string text = "this is a text file, not a picture";
  return {text.begin(), text.end()};
}

// Bytes that this process has had at most.
int64_t PeakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

TEST(DecodeJpeg, RefusesATruncatedFileAtAnyLength) {
  const std::vector<uint8_t> whole = ReadGolden("420.jpg");
  Image out;
  ASSERT_TRUE(DecodeJpeg(whole, &out).ok());
  for (size_t size = 0; size + 2 < whole.size(); size += 7) {
    const std::vector<uint8_t> part(whole.begin(), whole.begin() + std::ptrdiff_t(size));
    EXPECT_EQ(DecodeJpeg(part, &out).code(), absl::StatusCode::kDataLoss) << size;
  }
  const std::vector<uint8_t> most(whole.begin(), whole.end() - 40);
  ExpectDataLoss(DecodeJpeg(most, &out), "remature end");
}

TEST(DecodeJpeg, RefusesTextAndNothing) {
  Image out;
  ExpectDataLoss(DecodeJpeg(Text(), &out), "Not a JPEG file");
  ExpectDataLoss(DecodeJpeg({}, &out), "JPEG");
}

TEST(DecodeJpeg, AcceptsSurplusBytesBehindThePicture) {
  std::vector<uint8_t> bytes = ReadGolden("444.jpg");
  Image plain, longer;
  ASSERT_TRUE(DecodeJpeg(bytes, &plain).ok());
  bytes.resize(bytes.size() + 100);
  ASSERT_TRUE(DecodeJpeg(bytes, &longer).ok());
  EXPECT_EQ(plain.bytes, longer.bytes);
}

TEST(DecodeJpeg, RefusesAForgedSizeWithoutTakingMemory) {
  std::vector<uint8_t> bytes = ReadGolden("444.jpg");
  // Start of frame: FF C0, length, precision, then height and width.
  for (size_t i = 0; i + 9 < bytes.size(); ++i) {
    if (bytes[i] != 0xff || bytes[i + 1] != 0xc0) continue;
    bytes[i + 5] = bytes[i + 7] = 0xfd;
    break;
  }
  Image out;
  ExpectDataLoss(DecodeJpeg(bytes, &out), "exceeds");
}

TEST(DecodePng, RefusesATruncatedFileAtAnyLength) {
  const std::vector<uint8_t> whole = ReadGolden("rgb.png");
  Image out;
  for (size_t size = 0; size < whole.size(); size += 41) {
    const std::vector<uint8_t> part(whole.begin(), whole.begin() + std::ptrdiff_t(size));
    EXPECT_EQ(DecodePng(part, &out).code(), absl::StatusCode::kDataLoss) << size;
  }
  const std::vector<uint8_t> half(whole.begin(), whole.begin() + std::ptrdiff_t(whole.size() / 2));
  ExpectDataLoss(DecodePng(half, &out), "premature end of file");
}

// Text may come before the pixels, and libpng reserves what its length says.
TEST(DecodePng, RefusesAForgedChunkLengthWithoutTakingMemory) {
  std::vector<uint8_t> bytes = ReadGolden("rgb.png");
  constexpr size_t kAfterHeader = 8 + 12 + 13;  // signature, frame and data of the first chunk
  const std::vector<uint8_t> text = {0x40, 0, 0, 0, 't', 'E', 'X', 't'};
  bytes.insert(bytes.begin() + kAfterHeader, text.begin(), text.end());
  Image out;
  const int64_t before = PeakMemory();
  ExpectDataLoss(DecodePng(bytes, &out), "premature end of file");
  EXPECT_LT(PeakMemory() - before, 64 << 20);
}

TEST(DecodePng, RefusesTextAndFlippedBits) {
  Image out;
  ExpectDataLoss(DecodePng(Text(), &out), "Not a PNG file");
  std::vector<uint8_t> bytes = ReadGolden("grey.png");
  bytes[bytes.size() / 2] ^= 0x10;
  EXPECT_EQ(DecodePng(bytes, &out).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace hetero::pipeline
