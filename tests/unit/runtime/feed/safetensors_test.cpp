#include "runtime/feed/safetensors.h"

#include <gtest/gtest.h>

#include <string>

namespace hetero::feed {
namespace {

std::string FileOf(std::string header, const std::string& data) {
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  return file + header + data;
}

absl::StatusOr<SafetensorsFile> Parse(const std::string& header, const std::string& data = "") {
  return ParseSafetensors("weights", FileOf(header, data));
}

TEST(Safetensors, AHeaderLongerThanTheReferenceReadsIsRefusedBeforeItIsParsed) {
  std::string file(8 + kMaxSafetensorsHeader + 1, ' ');
  for (size_t i = 0; i < 8; ++i) {
    file[i] = static_cast<char>(static_cast<uint64_t>(kMaxSafetensorsHeader + 1) >> (8 * i));
  }
  const absl::Status status = ParseSafetensors("weights", file).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_NE(status.message().find("at most 100000000 are read"), std::string::npos) << status;
}

TEST(Safetensors, SidesThatNoTensorHasAreRefused) {
  for (const char* shape :
       {"[0,18446744073709551615]", "[9223372036854775808,0]", "[-1]", "[1.0]"}) {
    const auto file =
        Parse(std::string(R"({"w":{"dtype":"U8","shape":)") + shape + R"(,"data_offsets":[0,0]}})");
    EXPECT_TRUE(absl::IsDataLoss(file.status())) << shape;
  }
  const auto empty = Parse(R"({"w":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]}})");
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty->tensors.at("w").shape, (std::vector<int64_t>{0, 4}));
}

}  // namespace
}  // namespace hetero::feed
