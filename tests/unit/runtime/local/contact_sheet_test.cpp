#include "runtime/local/contact_sheet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/pipeline/decode.h"
#include "tests/unit/runtime/pipeline/fixtures.h"

namespace hetero::local {
namespace {

using pipeline::Image;
using pipeline::NoiseImage;

std::vector<uint8_t> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(ContactSheet, HoldsEnlargedPicturesAndCaptions) {
  std::vector<ContactSheetEntry> entries;
  for (int i = 0; i < 5; ++i) {
    Image image;
    image.Reshape({28, 28, i == 4 ? 1 : 3});
    std::fill(image.bytes.begin(), image.bytes.end(), uint8_t(40 * (i + 1)));
    entries.push_back({image, absl::StrCat("#", 1000 + i, " a class with a rather long name")});
  }
  const std::string path = ::testing::TempDir() + "contact_sheet_test.png";
  const absl::Status status = WriteContactSheet(entries, path);
  ASSERT_TRUE(status.ok()) << status;
  Image sheet;
  ASSERT_TRUE(pipeline::DecodePng(ReadFile(path), &sheet).ok());
  // 28 is enlarged five times to 140; three columns and two rows of cells.
  EXPECT_EQ(sheet.shape, (api::ImageShape{2 * (140 + 20 + 8) + 8, 3 * (160 + 8) + 8, 3}));
  EXPECT_EQ(sheet.row(8 + 139)[(8 + 139) * 3], 40);
  EXPECT_EQ(sheet.row(8 + 139)[(8 + 141) * 3], 255);
  const uint8_t* caption = sheet.row(8 + 140);
  EXPECT_LT(*std::min_element(caption, caption + 20 * sheet.row_bytes()), 60);
  std::filesystem::remove(path);
}

TEST(ContactSheet, NamesWhatItCannotWrite) {
  const ContactSheetEntry entry{NoiseImage({8, 8, 3}), "x"};
  const absl::Status status = WriteContactSheet({entry}, "/nonexistent/sheet.png");
  EXPECT_NE(std::string(status.message()).find("/nonexistent/sheet.png"), std::string::npos);
  EXPECT_FALSE(WriteContactSheet({}, "/tmp/unused.png").ok());
  EXPECT_FALSE(WriteContactSheet({{NoiseImage({8, 8, 2}), "x"}}, "/tmp/unused.png").ok());
}

}  // namespace
}  // namespace hetero::local
