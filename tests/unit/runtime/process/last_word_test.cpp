#include "runtime/process/last_word.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace hetero::process {
namespace {

class LastWordTest : public ::testing::Test {
 protected:
  LastWordTest() {
    std::string name = (std::filesystem::temp_directory_path() / "word-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    rank_.set_role("gpu");
    rank_.set_index(1);
    rank_.set_incarnation(7);
    word_.set_ok(true);
    word_.mutable_last()->mutable_progress()->set_step(40);
  }
  ~LastWordTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string folder_;
  v1::Identity rank_;
  v1::Finished word_;
};

TEST_F(LastWordTest, IsReadAsItWasWritten) {
  EXPECT_FALSE(ReadLastWord(folder_, rank_).has_value());
  WriteLastWord(folder_, rank_, word_);
  const auto read = ReadLastWord(folder_, rank_);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->SerializeAsString(), word_.SerializeAsString());
}

TEST_F(LastWordTest, IsThatOfOneProcessOnly) {
  WriteLastWord(folder_, rank_, word_);
  v1::Identity other = rank_;
  other.set_incarnation(8);
  EXPECT_FALSE(ReadLastWord(folder_, other).has_value());
  other = rank_;
  other.set_local_rank(1);
  EXPECT_FALSE(ReadLastWord(folder_, other).has_value());
}

TEST_F(LastWordTest, WhatCannotBeWrittenOrReadIsNone) {
  WriteLastWord("", rank_, word_);
  WriteLastWord(folder_ + "/missing", rank_, word_);
  EXPECT_FALSE(ReadLastWord("", rank_).has_value());
  WriteLastWord(folder_, rank_, word_);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    std::ofstream(entry.path()) << "no message";
  }
  EXPECT_FALSE(ReadLastWord(folder_, rank_).has_value());
}

}  // namespace
}  // namespace hetero::process
