#include "runtime/source/make_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <jpeglib.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "runtime/source/dataset.h"
#include "runtime/source/shape_picture.h"
#include "tests/unit/runtime/source/dataset_files.h"

namespace hetero::source {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

MakeDatasetOptions Options(const std::string& folder, api::DatasetFormat format) {
  MakeDatasetOptions options;
  options.folder = folder;
  options.format = format;
  options.classes = 10;
  options.samples = 400;
  options.validation_samples = 200;
  options.size = {32, 32};
  options.seed = 7;
  return options;
}

// Every file of a tree with its contents.
std::map<std::string, std::string> Tree(const std::string& root) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[fs::relative(entry.path(), root).string()] =
        std::string(std::istreambuf_iterator<char>(file), {});
  }
  return files;
}

Bytes DecodeJpeg(const Bytes& jpeg, api::Size size) {
  jpeg_decompress_struct decoder{};
  jpeg_error_mgr errors;
  decoder.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&decoder);
  jpeg_mem_src(&decoder, jpeg.data(), jpeg.size());
  jpeg_read_header(&decoder, TRUE);
  jpeg_start_decompress(&decoder);
  EXPECT_EQ(decoder.output_height, static_cast<JDIMENSION>(size.height));
  EXPECT_EQ(decoder.output_width, static_cast<JDIMENSION>(size.width));
  EXPECT_EQ(decoder.output_components, 3);
  Bytes pixels(size_t{3} * size.height * size.width);
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW row = pixels.data() + size_t{3} * size.width * decoder.output_scanline;
    jpeg_read_scanlines(&decoder, &row, 1);
  }
  jpeg_finish_decompress(&decoder);
  jpeg_destroy_decompress(&decoder);
  return pixels;
}

std::unique_ptr<Dataset> Open(const std::string& folder, job::Split split) {
  api::DatasetSource source;
  source.uri = "file://" + folder;
  auto dataset = OpenDataset(source, split, 0);
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  return *std::move(dataset);
}

struct Example {
  std::vector<double> features;
  int32_t label = 0;
};

std::vector<Example> Examples(const Dataset& dataset, api::Size size) {
  std::vector<Example> examples;
  RawSample sample;
  for (int64_t id = 0; id < dataset.size(); ++id) {
    EXPECT_TRUE(dataset.Read(id, &sample).ok());
    const Bytes pixels =
        sample.encoding == Encoding::kJpeg ? DecodeJpeg(sample.bytes, size) : sample.bytes;
    examples.push_back({{pixels.begin(), pixels.end()}, sample.label});
  }
  return examples;
}

// Share of `held_out` that its nearest neighbour in `known` labels rightly.
double NearestNeighbour(const std::vector<Example>& known, const std::vector<Example>& held_out) {
  int right = 0;
  for (const Example& example : held_out) {
    double best = HUGE_VAL;
    int32_t label = -1;
    for (const Example& other : known) {
      double distance = 0;
      for (size_t i = 0; i < example.features.size(); ++i) {
        const double difference = example.features[i] - other.features[i];
        distance += difference * difference;
      }
      if (distance < best) {
        best = distance;
        label = other.label;
      }
    }
    right += label == example.label;
  }
  return static_cast<double>(right) / static_cast<double>(held_out.size());
}

class MakeDatasetTest : public ::testing::TestWithParam<api::DatasetFormat> {
 protected:
  bool idx() const { return GetParam() == api::DatasetFormat::kIdx; }
  std::string Split(const std::string& folder, job::Split split) const {
    if (idx()) return folder;
    return folder + (split == job::Split::kTrain ? "/train" : "/val");
  }

  DatasetFolder folder_;
};

TEST_P(MakeDatasetTest, OpensAsWhatWasAskedFor) {
  const std::string made = folder_ / "new/set";
  ASSERT_TRUE(MakeDataset(Options(made, GetParam())).ok());
  for (const auto& [split, samples] :
       {std::pair{job::Split::kTrain, 400}, std::pair{job::Split::kValidation, 200}}) {
    const auto dataset = Open(Split(made, split), split);
    EXPECT_EQ(dataset->size(), samples);
    EXPECT_EQ(dataset->classes(), 10);
    std::map<int32_t, int> counts;
    RawSample sample;
    for (int64_t id = 0; id < dataset->size(); ++id) {
      ASSERT_TRUE(dataset->Read(id, &sample).ok());
      ++counts[sample.label];
    }
    EXPECT_EQ(counts.size(), 10u);
    for (const auto& [label, count] : counts) EXPECT_EQ(count, samples / 10) << label;
    if (idx()) {
      EXPECT_EQ(dataset->image(), (api::ImageShape{32, 32, 1}));
    }
  }
  EXPECT_FALSE(fs::exists(made + "/.partial"));
}

TEST_P(MakeDatasetTest, SameOptionsGiveTheSameBytes) {
  MakeDatasetOptions options = Options(folder_ / "a", GetParam());
  options.samples = options.validation_samples = 20;
  ASSERT_TRUE(MakeDataset(options).ok());
  options.folder = folder_ / "b";
  ASSERT_TRUE(MakeDataset(options).ok());
  options.folder = folder_ / "c";
  ++options.seed;
  ASSERT_TRUE(MakeDataset(options).ok());
  const auto a = Tree(folder_ / "a");
  const auto c = Tree(folder_ / "c");
  EXPECT_EQ(a.size(), idx() ? 4u : 40u);
  EXPECT_EQ(a, Tree(folder_ / "b"));
  for (const auto& [name, bytes] : a) {
    ASSERT_TRUE(c.contains(name));
    if (name.find("labels") == std::string::npos) {
      EXPECT_NE(bytes, c.at(name)) << name;
    }
  }
}

TEST_P(MakeDatasetTest, ClassesCanBeToldApartFarAboveChance) {
  ASSERT_TRUE(MakeDataset(Options(folder_ / "set", GetParam())).ok());
  const auto train = Open(Split(folder_ / "set", job::Split::kTrain), job::Split::kTrain);
  const auto validation =
      Open(Split(folder_ / "set", job::Split::kValidation), job::Split::kValidation);
  const double share =
      NearestNeighbour(Examples(*train, {32, 32}), Examples(*validation, {32, 32}));
  RecordProperty("share", std::to_string(share));
  EXPECT_GT(share, 0.3) << "chance is 0.1";
}

TEST_P(MakeDatasetTest, RefusesAFolderThatHoldsAnything) {
  folder_.Write("precious.txt", std::string_view("keep me"));
  const absl::Status status = MakeDataset(Options(folder_.path(), GetParam()));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(folder_.path()), HasSubstr("not empty")));
  EXPECT_EQ(Tree(folder_.path()).size(), 1u);
}

TEST_P(MakeDatasetTest, FillsAnEmptyFolderAndSkipsValidationOfZero) {
  MakeDatasetOptions options = Options(folder_.path(), GetParam());
  options.samples = 10;
  options.validation_samples = 0;
  ASSERT_TRUE(MakeDataset(options).ok());
  EXPECT_EQ(Tree(folder_.path()).size(), idx() ? 2u : 10u);
}

// A limit on the size of files stands in for a full disk: writing fails half way.
TEST_P(MakeDatasetTest, AFailedWriteLeavesNothingBehind) {
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = old;
  tight.rlim_cur = 300;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const absl::Status status = MakeDataset(Options(folder_ / "set", GetParam()));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(folder_ / "set"), HasSubstr("File too large")));
  EXPECT_FALSE(fs::exists(folder_ / "set"));
}

TEST_P(MakeDatasetTest, AnInterruptedRunIsNamed) {
  folder_.MakeFolder(".partial");
  EXPECT_THAT(std::string(MakeDataset(Options(folder_.path(), GetParam())).message()),
              HasSubstr("of a run that was cut off"));
}

INSTANTIATE_TEST_SUITE_P(Formats, MakeDatasetTest,
                         ::testing::Values(api::DatasetFormat::kImageFolder,
                                           api::DatasetFormat::kIdx),
                         [](const auto& info) {
                           return info.param == api::DatasetFormat::kIdx ? "Idx" : "ImageFolder";
                         });

TEST(MakeDatasetOptionsTest, BadOptionsAreRefused) {
  const DatasetFolder folder;
  const auto refused = [&](auto change, const char* says) {
    MakeDatasetOptions options = Options(folder / "set", api::DatasetFormat::kIdx);
    change(options);
    const absl::Status status = MakeDataset(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << says;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  };
  refused([](auto& o) { o.classes = 1; }, "classes 1");
  refused([](auto& o) { o.classes = 65; }, "classes 65");
  refused([](auto& o) { o.samples = 9; }, "samples 9");
  refused([](auto& o) { o.validation_samples = 9; }, "validation_samples 9");
  refused([](auto& o) { o.size = {4, 32}; }, "size 4x32");
  refused([](auto& o) { o.format = api::DatasetFormat::kTfRecord; }, "ImageFolder or IDX");
  EXPECT_FALSE(fs::exists(folder / "set"));
}

TEST(ShapePictureTest, AllClassesAreDistinct) {
  std::set<std::string> names;
  std::set<std::string> colour;
  std::set<std::string> grey;
  Bytes pixels;
  for (int32_t label = 0; label < kShapeClasses; ++label) {
    names.insert(ShapeClassName(label));
    DrawColourShape(label, {24, 24}, CounterRandom(5), &pixels);
    colour.emplace(pixels.begin(), pixels.end());
    DrawGreyShape(label, {24, 24}, CounterRandom(5), &pixels);
    grey.emplace(pixels.begin(), pixels.end());
  }
  EXPECT_EQ(names.size(), 64u);
  EXPECT_EQ(colour.size(), 64u);
  EXPECT_EQ(grey.size(), 64u);
}

}  // namespace
}  // namespace hetero::source
