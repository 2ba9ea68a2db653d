#include "runtime/pipeline/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/runtime/pipeline/fixtures.h"
#include "tests/unit/runtime/pipeline/plain_jpeg.h"

namespace hetero::pipeline {
namespace {

using ::testing::HasSubstr;

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

// A progressive JPEG of `side` x `side` pixels in one colour, in `scans` scans: the first has all
// that the picture needs, the others one bit of one coefficient each.
std::vector<uint8_t> InScans(int32_t side, int scans) {
  Image image;
  image.Reshape({side, side, 3});
  std::fill(image.bytes.begin(), image.bytes.end(), uint8_t{90});
  std::vector<jpeg_scan_info> script;
  script.push_back(
      {.comps_in_scan = 3, .component_index = {0, 1, 2}, .Ss = 0, .Se = 0, .Ah = 0, .Al = 0});
  for (int k = 1; k < scans; ++k) {
    const int component = (k - 1) / 63 % 3, at = (k - 1) % 63 + 1;
    script.push_back(
        {.comps_in_scan = 1, .component_index = {component}, .Ss = at, .Se = at, .Ah = 0, .Al = 0});
  }
  return EncodeWithLibjpeg(image, [&](jpeg_compress_struct* jpeg) {
    jpeg->scan_info = script.data();
    jpeg->num_scans = static_cast<int>(script.size());
  });
}

TEST(DecodeJpeg, ScansBeyondAnyEncoderAreRefusedByName) {
  Image out;
  EXPECT_TRUE(DecodeJpeg(InScans(16, 100), &out).ok());
  ExpectDataLoss(DecodeJpeg(InScans(16, 101), &out), "more than 100 scans");
  Box inside;
  const auto whole = [](const api::ImageShape& shape) {
    return Box{0, 0, shape.height, shape.width};
  };
  ExpectDataLoss(DecodeJpegBox(InScans(16, 101), whole, &out, &inside), "more than 100 scans");
}

// It took a gigabyte and a minute.
TEST(DecodeJpeg, AForgedProgressiveGiantIsRefusedWithoutTakingMemory) {
  std::vector<uint8_t> bytes = InScans(16, 3);
  // Start of a progressive frame: FF C2, length, precision, then height and width: 13,000 each.
  for (size_t i = 0; i + 9 < bytes.size(); ++i) {
    if (bytes[i] != 0xff || bytes[i + 1] != 0xc2) continue;
    bytes[i + 5] = bytes[i + 7] = 0x32;
    bytes[i + 6] = bytes[i + 8] = 0xc8;
    break;
  }
  Image out;
  const int64_t before = PeakMemory();
  ExpectDataLoss(DecodeJpeg(bytes, &out), "of a picture in several scans");
  EXPECT_LT(PeakMemory() - before, 64 << 20);
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
