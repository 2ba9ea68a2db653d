#include "runtime/source/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/storage/open_store.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/source/dataset_files.h"
#include "tests/unit/runtime/source/tar_files.h"

namespace hetero::source {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kTarGoldens = testing::SourceDir() + "/tests/golden/datasets/tar";

// Names with sizes, or the error.
absl::StatusOr<std::vector<std::string>> Members(const std::string& folder,
                                                 const std::string& file) {
  const auto store = storage::OpenStore("file://" + folder);
  if (!store.ok()) return store.status();
  const auto object = (*store)->Head(file);
  if (!object.ok()) return object.status();
  BlockReader reader(**store, *object);
  TarReader tar(reader);
  std::vector<std::string> names;
  TarMember member;
  while (true) {
    const absl::StatusOr<bool> found = tar.Next(&member);
    if (!found.ok()) return found.status();
    if (!*found) return names;
    names.push_back(member.name + " " + std::to_string(member.size));
  }
}

class TarTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<std::string>> Read(const std::string& archive) {
    folder_.Write("a.tar", std::string_view(archive));
    return Members(folder_.path(), "a.tar");
  }
  std::string Error(const std::string& archive) {
    return std::string(Read(archive).status().message());
  }

  DatasetFolder folder_;
};

TEST_F(TarTest, PythonsArchivesHaveTheirNames) {
  std::ifstream file(std::string(kTarGoldens) + "/names.json");
  const auto names = nlohmann::json::parse(file).get<std::vector<std::string>>();
  const auto sized = [](std::vector<std::string> all) {
    // The script fills each file with as many bytes as its name has characters.
    for (std::string& name : all) {
      size_t characters = 0;
      for (const char c : name) characters += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      name += " " + std::to_string(characters);
    }
    return all;
  };
  for (const char* format : {"gnu.tar", "pax.tar"}) {
    const auto found = Members(kTarGoldens, format);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, sized(names)) << format;
  }
  const auto found = Members(kTarGoldens, "ustar.tar");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, sized({names[0], names[1], names[3]}));
}

TEST_F(TarTest, FoldersAndLinksArePassedOver) {
  const std::string archive = TarMemberOf("folder/", "", '5') + TarMemberOf("folder/a.jpg", "abc") +
                              TarMemberOf("link", "", '2') + TarMemberOf("old/", "", '\0') +
                              TarMemberOf("b", std::string(600, 'b'));
  // With and without the zeros at the end.
  for (const std::string& end : {std::string(1024, '\0'), std::string()}) {
    const auto found = Read(archive + end);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT(*found, ElementsAre("folder/a.jpg 3", "b 600"));
  }
}

TEST_F(TarTest, WhatIsCutShortOrDamagedIsNamedWithItsByte) {
  const std::string archive =
      TarMemberOf("a", std::string(512, 'a')) + TarMemberOf("b", std::string(700, 'b'));
  EXPECT_THAT(Error(archive.substr(0, 1024 + 512 + 699)),
              AllOf(HasSubstr("a.tar"), HasSubstr("byte 1024"), HasSubstr("700 bytes"),
                    HasSubstr("cut short")));
  // The zeros behind a member's bytes are missing, and nobody can tell whether others are.
  EXPECT_THAT(Error(archive.substr(0, archive.size() - 1)), HasSubstr("byte 1024"));
  EXPECT_THAT(Error(archive.substr(0, 1100)), AllOf(HasSubstr("byte 1024"), HasSubstr("1100")));
  std::string damaged = archive;
  damaged[1030] ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(Read(damaged).status()));
  EXPECT_THAT(Error(damaged), AllOf(HasSubstr("byte 1024"), HasSubstr("checksum")));
  EXPECT_THAT(Error(std::string(600, 'x')), HasSubstr("is this a tar archive?"));
  EXPECT_THAT(Error("\x1f\x8b" + std::string(600, 'x')), HasSubstr("gunzip"));
}

TEST_F(TarTest, ALongNameHasALimit) {
  EXPECT_THAT(Error(TarMemberOf("././@LongLink", std::string(2 << 20, 'n'), 'L')),
              HasSubstr("a long name of 2097152 bytes"));
  EXPECT_THAT(Error(TarMemberOf("x", "99 path=a\n", 'x') + TarMemberOf("b", "b")),
              AllOf(HasSubstr("byte 512"), HasSubstr("extended header")));
}

TEST_F(TarTest, SizesAreTakenFromTheExtendedHeader) {
  const auto found = Read(TarMemberOf("x", "10 size=3\n", 'x') + TarMemberOf("b", "bbb"));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found, ElementsAre("b 3"));
  EXPECT_THAT(Error(TarMemberOf("x", "15 size=999999\n", 'x') + TarMemberOf("b", "bbb")),
              HasSubstr("999999 bytes"));
  EXPECT_THAT(Error(TarMemberOf("x", "11 size=-1\n", 'x') + TarMemberOf("b", "bbb")),
              HasSubstr("size -1"));
}

TEST_F(TarTest, SparseFilesAreRefused) {
  EXPECT_THAT(Error(TarMemberOf("s", "", 'S')), HasSubstr("without --sparse"));
  EXPECT_THAT(Error(TarMemberOf("x", "22 GNU.sparse.major=1\n", 'x') + TarMemberOf("b", "")),
              HasSubstr("without --sparse"));
}

}  // namespace
}  // namespace hetero::source
