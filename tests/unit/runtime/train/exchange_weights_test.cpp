// Python's torchvision loads our weights and we load its. Needs a Python with torch, torchvision
// and safetensors ($HETERO_PYTHON); open_model_test.cpp holds what is checked without one.
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/train/models/model.h"
#include "runtime/train/models/weights.h"
#include "tests/unit/runtime/train/golden_weights.h"
#include "tests/unit/runtime/train/python.h"

namespace hetero::train {
namespace {

constexpr int kNoTorch = 77;
constexpr api::ImageShape kInput = {32, 32, 3};

class ExchangeWeights : public ::testing::TestWithParam<std::string> {};

TEST_P(ExchangeWeights, BothWays) {
  const std::string path = ::testing::TempDir() + "/exchange_" + GetParam() + ".safetensors";
  const std::string arguments = GetParam() + " 32 " + path;
  const PythonResult written = RunPython("exchange_weights.py", "write " + arguments);
  if (written.exit_code == kNoTorch) {
    GTEST_SKIP() << "NOT RUN: this Python has no torch with torchvision and safetensors ("
                 << written.output << "); set HETERO_PYTHON";
  }
  ASSERT_EQ(written.exit_code, 0) << written.output;
  const auto loaded = OpenModel({.name = GetParam(), .weights = "file://" + path}, 10, kInput, 1);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const std::shared_ptr<Model> filled = *OpenModel({.name = GetParam()}, 10, kInput, 1);
  FillWeights(*filled);
  const auto want = filled->named_parameters();
  for (const auto& entry : (*loaded)->named_parameters()) {
    EXPECT_TRUE(torch::equal(entry.value(), want[entry.key()])) << entry.key();
  }
  ASSERT_TRUE(SaveWeights(*filled, path).ok());
  const PythonResult checked = RunPython("exchange_weights.py", "check " + arguments);
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
  std::cout << checked.output;
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Models, ExchangeWeights,
                         ::testing::Values("resnet18", "resnet50", "vit_b_16"));

}  // namespace
}  // namespace hetero::train
