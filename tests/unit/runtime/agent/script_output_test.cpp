#include "runtime/agent/script_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "tests/support/temporary_folder.h"

namespace hetero::agent {
namespace {

class ScriptOutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(source_), 0);
    fcntl(source_[0], F_SETFL, O_NONBLOCK);
    passed_ = open((folder_ / "passed").c_str(), O_RDWR | O_CREAT | O_APPEND, 0600);
  }
  void TearDown() override {
    output_.reset();
    for (const int file : {source_[0], source_[1], passed_}) close(file);
  }
  void Open(const std::string& prefix = "", int64_t log_limit = 1 << 20) {
    auto opened = ScriptOutput::Open({.source = source_[0],
                                      .passed_to = passed_,
                                      .prefix = prefix,
                                      .log_file = folder_ / "log",
                                      .log_limit = log_limit});
    ASSERT_TRUE(opened.ok()) << opened.status();
    output_ = *std::move(opened);
  }
  void Print(const std::string& text) const {
    ASSERT_EQ(write(source_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ / name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  testing::TemporaryFolder folder_;
  int source_[2] = {-1, -1};
  int passed_ = -1;
  std::unique_ptr<ScriptOutput> output_;
};

TEST_F(ScriptOutputTest, PassesOnAndKeepsTheEnd) {
  Open();
  Print("one\ntwo");
  EXPECT_EQ(output_->TakeTail(), "one\ntwo");
  EXPECT_EQ(Read("passed"), "one\ntwo");
  EXPECT_EQ(Read("log"), "one\ntwo");
  output_->Begin(2);
  Print("three\n");
  EXPECT_EQ(output_->TakeTail(), "three\n");
  EXPECT_EQ(Read("log"), "one\ntwo--- generation 2 ---\nthree\n");
}

TEST_F(ScriptOutputTest, EachLineHasItsPrefixOnceHoweverItComes) {
  Open("[rank 3] ");
  Print("a\nb");
  EXPECT_EQ(output_->TakeTail(), "a\nb");
  Print("c\n\nd\n");
  output_->TakeTail();
  EXPECT_EQ(Read("passed"), "[rank 3] a\n[rank 3] bc\n[rank 3] \n[rank 3] d\n");
}

TEST_F(ScriptOutputTest, TheTailBeginsWithALine) {
  Open();
  for (int i = 0; i < 1000; ++i) Print("line " + std::to_string(i) + "\n");
  const std::string tail = output_->TakeTail();
  EXPECT_LE(tail.size(), 4096u);
  EXPECT_GT(tail.size(), 4000u);
  EXPECT_EQ(tail.substr(0, 5), "line ");
  EXPECT_EQ(tail.substr(tail.size() - 9), "line 999\n");
}

TEST_F(ScriptOutputTest, OneEndlessLineIsPassedOnInPieces) {
  Open();
  std::thread printer([&] {
    for (int i = 0; i < 256; ++i) Print(std::string(4096, 'x'));
  });
  printer.join();
  EXPECT_EQ(output_->TakeTail(), std::string(4096, 'x'));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "passed"), 256u * 4096);
}

TEST_F(ScriptOutputTest, TheLogIsCutAndSaysSo) {
  Open("", 1000);
  for (int i = 0; i < 1000; ++i) Print("0123456789\n");
  output_->TakeTail();
  const std::string log = Read("log");
  EXPECT_LT(log.size(), 1100u);
  EXPECT_NE(log.find("no more is kept"), std::string::npos);
  EXPECT_EQ(Read("passed").size(), 11000u);
}

TEST_F(ScriptOutputTest, ALogThatCannotBeWrittenIsNamed) {
  const auto opened = ScriptOutput::Open({.source = source_[0], .log_file = "/no/such/folder/log"});
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("/no/such/folder/log"), std::string::npos);
}

}  // namespace
}  // namespace hetero::agent
