// CIFAR from the archive that it is published as: a job reads the stream of the unpacked files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/integration/local/datasets.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/paths.h"

namespace hetero {
namespace {

using ::testing::HasSubstr;
using testing::InputDigest;
using testing::ProgramResult;
using testing::RunProgram;
using testing::TemporaryFolder;

TEST(CifarArchive, GivesTheStreamOfItsFiles) {
  const std::string files = testing::SourceDir() + "/tests/golden/datasets/cifar10";
  TemporaryFolder packing, folder;
  std::filesystem::copy(files, packing / "cifar-10-batches-bin");
  const std::string archive = folder / "cifar-10-binary.tar.gz";
  const std::string command =
      "tar -C '" + packing.path() + "' -czf '" + archive + "' cifar-10-batches-bin";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const std::string digest = InputDigest("{uri: \"file://" + files + "\"}");
  EXPECT_EQ(digest.size(), 32u);
  EXPECT_EQ(InputDigest("{uri: \"file://" + folder.path() + "\"}"), digest);
  const ProgramResult inspected = RunProgram("hetero-runtime", {"inspect", folder.path()});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.output;
  EXPECT_THAT(inspected.output, HasSubstr("CIFAR10"));
}

}  // namespace
}  // namespace hetero
