// Weights both ways without Python's torch: the file that safetensors.torch.save_file wrote of
// torchvision's models is put together again, byte for byte, and ours is read by others.
// exchange_weights_test.cpp does the same with torchvision itself where it is installed.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "runtime/train/models/model.h"
#include "runtime/train/models/named_tensors.h"
#include "runtime/train/models/weights.h"
#include "tests/unit/runtime/train/golden_weights.h"
#include "tests/unit/runtime/train/python.h"

namespace hetero::train {
namespace {

constexpr api::ImageShape kFileInput = {32, 32, 3};

// Of Python's header, with our values in the places that it names.
std::string PythonsFile(const std::string& header, size_t bytes, const NamedTensors& tensors) {
  const auto length = static_cast<uint64_t>(header.size());
  std::string file(bytes, '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  std::memcpy(file.data() + sizeof(length), header.data(), header.size());
  char* data = file.data() + sizeof(length) + header.size();
  const nlohmann::json places = nlohmann::json::parse(header);
  EXPECT_EQ(places.size() - places.count("__metadata__"), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const auto place = places.find(name);
    if (place == places.end()) {
      ADD_FAILURE() << name << " is not in Python's file";
      continue;
    }
    EXPECT_EQ((*place)["shape"].get<std::vector<int64_t>>(), tensor.sizes().vec()) << name;
    EXPECT_EQ((*place)["dtype"], tensor.is_floating_point() ? "F32" : "I64") << name;
    const auto begin = (*place)["data_offsets"][0].get<size_t>();
    const auto end = (*place)["data_offsets"][1].get<size_t>();
    if (end - begin != tensor.nbytes() || end > bytes - sizeof(length) - header.size()) {
      ADD_FAILURE() << name << " has other bytes in Python's file";
      continue;
    }
    std::memcpy(data + begin, tensor.data_ptr(), tensor.nbytes());
  }
  return file;
}

class TorchvisionFiles : public ::testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  static std::shared_ptr<Model> Filled() {
    const auto model = OpenModel({.name = GetParam()}, 10, kFileInput, 1);
    FillWeights(**model);
    return *model;
  }

  const std::string path_ =
      ::testing::TempDir() + "/" + std::to_string(getpid()) + GetParam() + ".safetensors";
};

TEST_P(TorchvisionFiles, PythonsLoad) {
  const nlohmann::json golden = ReadGolden("torchvision_files.json")[GetParam()];
  const std::shared_ptr<Model> filled = Filled();
  {
    const std::string file =
        PythonsFile(golden["header"], golden["bytes"].get<size_t>(), CopyOf(ModelTensors(*filled)));
    ASSERT_EQ(crc32_z(0, reinterpret_cast<const Bytef*>(file.data()), file.size()),
              golden["crc32"].get<uint64_t>())
        << "this is not the file that Python wrote";
    std::ofstream(path_, std::ios::binary) << file;
  }
  const auto loaded =
      OpenModel({.name = GetParam(), .weights = "file://" + path_}, 10, kFileInput, 1);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const NamedTensors want = ModelTensors(*filled);
  const NamedTensors have = ModelTensors(**loaded);
  ASSERT_EQ(have.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(torch::equal(have[i].second, want[i].second)) << want[i].first;
  }
}

TEST_P(TorchvisionFiles, OursHoldTheSame) {
  ASSERT_TRUE(SaveWeights(*Filled(), path_).ok());
  const PythonResult checked =
      RunPython("torchvision_files.py", "check " + GetParam() + " " + path_);
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
  std::cout << checked.output;
}

INSTANTIATE_TEST_SUITE_P(Models, TorchvisionFiles,
                         ::testing::Values("resnet18", "resnet50", "vit_b_16"));

}  // namespace
}  // namespace hetero::train
