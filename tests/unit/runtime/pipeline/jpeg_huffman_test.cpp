#include <gtest/gtest.h>

#include <array>
#include <opencv2/imgproc.hpp>
#include <string>

#include "runtime/pipeline/decode.h"
#include "tests/unit/runtime/pipeline/fixtures.h"
#include "tests/unit/runtime/pipeline/plain_jpeg.h"

// Our reading of JPEG's codes against libjpeg's own: the same pixels of every good file, and no bad
// file that only we accept.
namespace hetero::pipeline {
namespace {

// Smooth noise and hard edges: long runs of zeros and large coefficients.
Image Picture(api::Size size, uint64_t seed) {
  const Image coarse = NoiseImage({size.height / 12 + 2, size.width / 12 + 2, 3}, seed);
  const cv::Mat from(coarse.shape.height, coarse.shape.width, CV_8UC3,
                     const_cast<uint8_t*>(coarse.bytes.data()));
  Image image;
  image.Reshape({size.height, size.width, 3});
  cv::Mat to(size.height, size.width, CV_8UC3, image.bytes.data());
  cv::resize(from, to, to.size(), 0, 0, cv::INTER_CUBIC);
  cv::circle(to, {size.width / 2, size.height / 2}, size.width / 4, cv::Scalar::all(255), 3);
  return image;
}

struct Variant {
  const char* name;
  std::function<void(jpeg_compress_struct*)> choose;
};

void Sample(jpeg_compress_struct* jpeg, int horizontal, int vertical) {
  jpeg->comp_info[0].h_samp_factor = horizontal;
  jpeg->comp_info[0].v_samp_factor = vertical;
}

const std::vector<Variant>& Variants() {
  static const auto* const variants = new std::vector<Variant>{
      {"4:2:0", [](auto* jpeg) { jpeg_set_quality(jpeg, 75, TRUE); }},
      {"4:4:4", [](auto* jpeg) { Sample(jpeg, 1, 1); }},
      {"4:2:2", [](auto* jpeg) { Sample(jpeg, 2, 1); }},
      {"4:4:0", [](auto* jpeg) { Sample(jpeg, 1, 2); }},
      {"4:1:1", [](auto* jpeg) { Sample(jpeg, 4, 1); }},
      {"finest", [](auto* jpeg) { jpeg_set_quality(jpeg, 100, TRUE); }},
      {"coarsest", [](auto* jpeg) { jpeg_set_quality(jpeg, 1, TRUE); }},
      {"its own tables", [](auto* jpeg) { jpeg->optimize_coding = TRUE; }},
      {"restarts", [](auto* jpeg) { jpeg->restart_interval = 3; }},
      {"restarts by row", [](auto* jpeg) { jpeg->restart_in_rows = 1; }},
      {"grey", [](auto* jpeg) { jpeg_set_colorspace(jpeg, JCS_GRAYSCALE); }},
      {"rgb", [](auto* jpeg) { jpeg_set_colorspace(jpeg, JCS_RGB); }},
      {"progressive", [](auto* jpeg) { jpeg_simple_progression(jpeg); }},
      {"three scans", [](auto* jpeg) {
         static constexpr std::array<jpeg_scan_info, 3> kScans = {
             {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}}};
         jpeg->scan_info = kScans.data();
         jpeg->num_scans = kScans.size();
       }}};
  return *variants;
}

TEST(JpegHuffman, EveryKindOfFileHasLibjpegsPixels) {
  uint64_t seed = 0;
  for (const api::Size size : {api::Size{120, 161}, {1, 1}, {8, 300}, {33, 16}}) {
    for (const Variant& variant : Variants()) {
      for (const Image& image : {Picture(size, ++seed), NoiseImage({size.height, size.width, 3})}) {
        const std::vector<uint8_t> bytes = EncodeWithLibjpeg(image, variant.choose);
        Image ours, theirs;
        int code = 0;
        ASSERT_TRUE(DecodeWithLibjpeg(bytes, &theirs, &code)) << variant.name;
        const absl::Status status = DecodeJpeg(bytes, &ours);
        ASSERT_TRUE(status.ok()) << variant.name << ": " << status;
        EXPECT_TRUE(ours.bytes == theirs.bytes) << variant.name << " " << size.width;
      }
    }
  }
}

// Programs may write several bytes of ones where one is meant. Without them libjpeg itself is the
// judge: with them it leaves coefficients of a first attempt in the block.
TEST(JpegHuffman, BytesOfOnesBeforeAStuffedZeroAreOne) {
  const std::vector<uint8_t> plain =
      EncodeWithLibjpeg(NoiseImage({90, 120, 3}), Variants().front().choose);
  Image theirs;
  int code = 0;
  ASSERT_TRUE(DecodeWithLibjpeg(plain, &theirs, &code));
  for (const size_t more : {1, 2, 3}) {
    std::vector<uint8_t> padded;
    int places = 0;
    for (size_t i = 0; i < plain.size(); ++i) {
      const bool stuffed = i + 1 < plain.size() && plain[i] == 0xff && plain[i + 1] == 0;
      // In tables before the scan they would be values.
      if (stuffed && i > 700) padded.insert(padded.end(), more, 0xff), ++places;
      padded.push_back(plain[i]);
    }
    ASSERT_GT(places, 10);
    Image ours;
    const absl::Status status = DecodeJpeg(padded, &ours);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(ours.bytes == theirs.bytes) << more;
    EXPECT_EQ(WithoutPadding(padded), plain) << more;
  }
}

// Bits flipped, bytes overwritten, taken away or put in, anywhere behind the header.
std::vector<uint8_t> Damage(std::vector<uint8_t> bytes, size_t header, job::RandomStream& random) {
  const uint32_t times = 1 + random.Below(3);
  for (uint32_t i = 0; i < times; ++i) {
    const size_t at = header + random.Below(uint32_t(bytes.size() - header));
    const auto place = bytes.begin() + std::ptrdiff_t(at);
    switch (random.Below(5)) {
      case 0:
        bytes[at] ^= uint8_t(1 << random.Below(8));
        break;
      case 1:
        bytes[at] = 0xff;
        break;
      case 2:
        bytes[at] = uint8_t(random.Below(256));
        break;
      case 3:
        bytes.erase(place);
        break;
      default:
        bytes.insert(place, uint8_t(random.Below(256)));
    }
  }
  return bytes;
}

// What is under a box of a picture that decodes as a whole; of any other, only that it ends.
void ExpectBoxOf(const std::vector<uint8_t>& bytes, const Image* whole, const std::string& name,
                 job::RandomStream& random) {
  Box box;
  const auto choose = [&](const api::ImageShape& shape) {
    box.height = 1 + int32_t(random.Below(uint32_t(shape.height)));
    box.width = 1 + int32_t(random.Below(uint32_t(shape.width)));
    box.top = int32_t(random.Below(uint32_t(shape.height - box.height + 1)));
    box.left = int32_t(random.Below(uint32_t(shape.width - box.width + 1)));
    return box;
  };
  Image part;
  Box inside;
  const absl::Status status = DecodeJpegBox(bytes, choose, &part, &inside);
  if (whole == nullptr) return;
  ASSERT_TRUE(status.ok()) << name << ": " << status;
  EXPECT_TRUE(Cut(part, inside).bytes == Cut(*whole, box).bytes) << name;
}

TEST(JpegHuffman, DamagedFilesAreAsBadAsTheyAreToLibjpeg) {
  job::RandomStream random(5, 0, 0, 0);
  int good = 0, bad = 0, stricter = 0;
  for (const Variant& variant : Variants()) {
    const std::vector<uint8_t> whole = EncodeWithLibjpeg(Picture({90, 120}, 7), variant.choose);
    for (int i = 0; i < 500; ++i) {
      // Half of them in the tables too, from the first one on.
      const std::vector<uint8_t> bytes = Damage(whole, i % 2 == 0 ? 20 : 650, random);
      Image ours, theirs;
      int code = 0;
      const bool accepted = DecodeWithLibjpeg(bytes, &theirs, &code);
      const absl::Status status = DecodeJpeg(bytes, &ours);
      ExpectBoxOf(bytes, status.ok() ? &ours : nullptr,
                  std::string(variant.name) + " " + std::to_string(i), random);
      if (!accepted) {
        ++bad;
        EXPECT_FALSE(status.ok()) << variant.name << " " << i << ", message " << code;
      } else if (status.ok()) {
        ++good;
        if (ours.bytes != theirs.bytes) {
          ASSERT_TRUE(DecodeWithLibjpeg(WithoutPadding(bytes), &theirs, &code));
        }
        EXPECT_TRUE(ours.bytes == theirs.bytes) << variant.name << " " << i;
      } else {
        // Far from the end of a file libjpeg takes what is no code for the end of a block.
        ++stricter;
        EXPECT_EQ(status.message(), "JPEG: Corrupt JPEG data: bad Huffman code")
            << variant.name << " " << i;
      }
    }
  }
  EXPECT_GT(good, 700);
  EXPECT_GT(bad, 700);
  EXPECT_LT(stricter, 200);
  RecordProperty("stricter", stricter);
}

}  // namespace
}  // namespace hetero::pipeline
