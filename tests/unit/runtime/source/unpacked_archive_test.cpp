#include "runtime/source/unpacked_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/storage/file_store.h"
#include "tests/unit/runtime/source/dataset_files.h"
#include "tests/unit/runtime/source/tar_files.h"

namespace hetero::source {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class UnpackedArchiveTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<UnpackedArchive>> Open(const std::string& name = "a.tar.gz") {
    const auto store = *storage::OpenFileStore(folder_.path());
    return UnpackedArchive::Open(*store, *store->Head(name), UnpackedArchive::Limits());
  }
  absl::StatusOr<std::unique_ptr<UnpackedArchive>> OpenTar(const std::string& tar) {
    folder_.Write("a.tar.gz",
                  StoredGzip({reinterpret_cast<const uint8_t*>(tar.data()), tar.size()}));
    return Open();
  }
  std::vector<std::string> NamesIn(const std::string& tar) {
    const auto archive = OpenTar(tar);
    if (!archive.ok()) return {std::string(archive.status().message())};
    std::vector<std::string> names;
    const auto objects = (*archive)->List("");
    for (const storage::Object& object : *objects) names.push_back(object.name);
    return names;
  }
  // `bytes` as "random" in the archive, by the system's tar.
  std::string Pack(const std::string& bytes) {
    packing_.Write("random", bytes);
    const std::string path = folder_ / "a.tar.gz";
    const std::string command = absl::StrCat("tar -C ", packing_.path(), " -czf ", path, " random");
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return path;
  }
  // What gzip cannot make smaller.
  static std::string RandomBytes(size_t size) {
    std::mt19937 random(7);
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  }

  DatasetFolder folder_;
  DatasetFolder packing_;
};

// Several times as large as the pieces in which it is read and decompressed.
TEST_F(UnpackedArchiveTest, OfManyPiecesHasTheBytesOfItsFile) {
  const std::string bytes = RandomBytes(13'000'001);
  Pack(bytes);
  const auto archive = Open();
  ASSERT_TRUE(archive.ok()) << archive.status();
  const auto store = *storage::OpenFileStore(folder_.path());
  const auto file = (*archive)->Head("random");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size, 13'000'001);
  EXPECT_EQ(file->version, store->Head("a.tar.gz")->version);
  EXPECT_THAT(*(*archive)->List(""), ElementsAre(*file));
  EXPECT_THAT(*(*archive)->List("randomly"), ElementsAre());
  std::string read(bytes.size(), '\0');
  const auto out = absl::MakeSpan(reinterpret_cast<uint8_t*>(read.data()), read.size());
  ASSERT_TRUE((*archive)->Read(*file, 0, out).ok());
  EXPECT_TRUE(read == bytes);
  ASSERT_TRUE((*archive)->Read(*file, 8'388'600, out.first(20)).ok());
  EXPECT_EQ(read.substr(0, 20), bytes.substr(8'388'600, 20));
  EXPECT_TRUE(absl::IsOutOfRange((*archive)->Read(*file, 13'000'000, out.first(2))));
  EXPECT_TRUE(absl::IsOutOfRange((*archive)->Read(*file, -1, out.first(1))));
  EXPECT_TRUE(absl::IsNotFound((*archive)->Head("other").status()));
}

TEST_F(UnpackedArchiveTest, DamageIsNamedWithTheByteWhereItIs) {
  const std::string path = Pack(RandomBytes(13'000'001));
  std::string packed = testing::ReadFileOrDie(path);
  // A block of bytes that cannot be compressed is 65,535 bytes at most: a head of one is among
  // these.
  constexpr size_t kDamaged = 6'500'000, kBytes = 131'072;
  packed.replace(kDamaged, kBytes, std::string(kBytes, '\xff'));
  folder_.Write("a.tar.gz", std::string_view(packed));
  const absl::Status damaged = Open().status();
  EXPECT_TRUE(absl::IsDataLoss(damaged));
  const std::string message(damaged.message());
  ASSERT_THAT(message, AllOf(HasSubstr("a.tar.gz"), HasSubstr("damaged gzip data near byte ")));
  const size_t number = message.find("near byte ") + 10;
  size_t byte = 0;
  ASSERT_TRUE(absl::SimpleAtoi(message.substr(number, message.find(' ', number) - number), &byte));
  EXPECT_GE(byte, kDamaged) << message;
  EXPECT_LE(byte, kDamaged + kBytes + 1024) << message;

  folder_.Write("a.tar.gz", std::string_view(packed).substr(0, 5'000'000));
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("cut short at byte 5000000"));
  folder_.Write("a.tar.gz", std::string_view());
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("cut short at byte 0"));
}

TEST_F(UnpackedArchiveTest, AWrongChecksumOrSizeIsDamage) {
  const std::string tar = TarOf({{"a", "bytes"}});
  ASSERT_THAT(NamesIn(tar), ElementsAre("a"));
  const std::string whole = testing::ReadFileOrDie(folder_ / "a.tar.gz");
  for (const size_t from_end : {8u, 4u}) {
    std::string wrong = whole;
    wrong[wrong.size() - from_end] ^= 1;
    folder_.Write("a.tar.gz", std::string_view(wrong));
    EXPECT_TRUE(absl::IsDataLoss(Open().status())) << from_end;
  }
}

TEST_F(UnpackedArchiveTest, HasRegularFilesAlone) {
  EXPECT_THAT(NamesIn(TarMemberOf("folder/", "", '5') + TarMemberOf("link", "", '2') +
                      TarMemberOf("hard", "", '1') + TarMemberOf("", "nameless") +
                      TarMemberOf("./", "a folder of old") +
                      TarOf({{"././b", "1"}, {"/root", "2"}, {"../up", "3"}, {".hidden", "4"}})),
              ElementsAre("../up", ".hidden", "/root", "b"));
}

TEST_F(UnpackedArchiveTest, IsDecompressedOnceForAllWhoHaveItAtATime) {
  const auto store = *storage::OpenFileStore(folder_.path());
  const auto open = [&] {
    const auto archive = UnpackedArchive::OpenShared(*store, *store->Head("a.tar.gz"));
    EXPECT_TRUE(archive.ok()) << archive.status();
    return archive.value_or(nullptr);
  };
  Pack("one");
  auto first = open();
  EXPECT_EQ(open(), first);
  // Another version is another archive; what has the first one goes on reading that.
  Pack("another");
  const auto second = open();
  EXPECT_EQ(second->Head("random")->size, 7);
  EXPECT_EQ(first->Head("random")->size, 3);
  std::string bytes(3, '\0');
  ASSERT_TRUE(first
                  ->Read(*first->Head("random"), 0,
                         absl::MakeSpan(reinterpret_cast<uint8_t*>(bytes.data()), 3))
                  .ok());
  EXPECT_EQ(bytes, "one");
}

TEST_F(UnpackedArchiveTest, OfTooManyFilesIsRefused) {
  ASSERT_TRUE(OpenTar(TarOf({{"a", "1"}, {"b", "2"}, {"c", "3"}})).ok());
  const auto store = *storage::OpenFileStore(folder_.path());
  const auto open = [&](size_t files) {
    return UnpackedArchive::Open(*store, *store->Head("a.tar.gz"), {.files = files}).status();
  };
  EXPECT_TRUE(open(3).ok()) << open(3);
  EXPECT_THAT(std::string(open(2).message()), HasSubstr("has more than 2 files"));
}

TEST_F(UnpackedArchiveTest, WhatCannotBeReadRightIsRefused) {
  EXPECT_THAT(NamesIn(TarMemberOf("sparse", "1", 'S')), ElementsAre(HasSubstr("a sparse file")));
  EXPECT_THAT(NamesIn(TarOf({{"./a", "1"}, {"a", "2"}})), ElementsAre(HasSubstr("two files a")));
  EXPECT_THAT(NamesIn(std::string(2000, 'x')), ElementsAre(HasSubstr("is this a tar archive?")));
  const std::string tar = TarMemberOf("a", std::string(5000, 'x'));
  EXPECT_THAT(NamesIn(tar.substr(0, 4000)),
              ElementsAre(AllOf(HasSubstr("a.tar.gz"), HasSubstr("cut short or damaged"))));
}

}  // namespace
}  // namespace hetero::source
