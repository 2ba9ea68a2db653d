// Models of TorchScript files, which may do what no built-in one does: raise, leave parameters
// unused, hold frozen ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <new>
#include <string>

#include "runtime/train/models/model.h"
#include "runtime/train/process_group/exceptions.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/train/rank_runner.h"
#include "tests/unit/runtime/train/script_file.h"

namespace hetero::train {
namespace {

using hetero::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr api::ImageShape kScriptPicture = {4, 4, 3};

constexpr int64_t kInputs = 4 * 4 * 3;

// One generation: a rank that is left over would wait a minute for the others in each.
TestJob MakeScriptJob(const std::string& script) {
  TestJob job;
  job.training = MakeTraining("net", 4, 6);
  job.training.model.torch_script = script;
  job.image = kScriptPicture;
  job.samples = 200;
  return job;
}

// Sample 18 is in the batch of rank 0 of the third step of two ranks: slots 16 to 23.
void WhiteSample(int64_t id, std::span<uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = id == 18 ? 255 : static_cast<uint8_t>((id * 7 + static_cast<int64_t>(i)) % 97);
  }
}

// It counted as the loss of another rank, and generations followed each other without end.
TEST(ScriptTrainingTest, AModelThatThrowsFailsTheJobWithItsMessageRankAndStep) {
  TemporaryFolder folder;
  TestJob job = MakeScriptJob(SaveScript(folder, kRaisesForWhite, kInputs));
  job.make_sample = WhiteSample;
  const std::vector<RankRecord> records = RunRanks(job, 2);
  EXPECT_TRUE(absl::IsInternal(records[0].status)) << records[0].status;
  EXPECT_THAT(std::string(records[0].status.message()),
              AllOf(StartsWith("rank 0, training step 3: "),
                    HasSubstr("the model does not like white"), Not(HasSubstr("another rank"))));
  EXPECT_TRUE(absl::IsUnavailable(records[1].status)) << records[1].status;
  EXPECT_THAT(std::string(records[1].status.message()), HasSubstr("lost another rank"));
}

TEST(ScriptTrainingTest, AModelThatThrowsInAJobOfOneRankSaysWhere) {
  TemporaryFolder folder;
  TestJob job = MakeScriptJob(SaveScript(folder, kRaisesForWhite, kInputs));
  job.make_sample = WhiteSample;
  const RankRecord record = RunRanks(job, 1).front();
  EXPECT_THAT(std::string(record.status.message()),
              AllOf(StartsWith("rank 0, training step 5: "), HasSubstr("does not like white")));
}

// Only where the picture is white, and then more than any machine has.
constexpr char kHungry[] = R"(
def forward(self, images):
    x = torch.flatten(images, 1)
    if self.training:
        if float(torch.max(torch.mean(x, 1))) > 1.9:
            x = torch.ones([1000000, 1000000, 1000])
    return torch.add(torch.matmul(x, torch.t(self.weight)), self.frozen)
)";

TEST(ScriptTrainingTest, NoMemoryInOneRankIsNamed) {
  TemporaryFolder folder;
  TestJob job = MakeScriptJob(SaveScript(folder, kHungry, kInputs));
  job.make_sample = WhiteSample;
  const std::vector<RankRecord> records = RunRanks(job, 2);
  EXPECT_TRUE(absl::IsResourceExhausted(records[0].status)) << records[0].status;
  EXPECT_THAT(std::string(records[0].status.message()),
              AllOf(StartsWith("rank 0, training step 3: out of memory: "),
                    HasSubstr("spec.training.batchSizePerWorker")));
  EXPECT_TRUE(absl::IsUnavailable(records[1].status)) << records[1].status;
}

constexpr char kPlain[] = R"(
def forward(self, images):
    return torch.add(torch.matmul(torch.flatten(images, 1), torch.t(self.weight)), self.frozen)
)";

// Weight decay and momentum acted on both; with two ranks the first step already failed.
TEST(ScriptTrainingTest, FrozenAndUnusedParametersWereTrained) {
  for (const int32_t ranks : {1, 2, 3}) {
    TemporaryFolder folder;
    TemporaryFolder output;
    TestJob job = MakeScriptJob(SaveScript(folder, kPlain, kInputs));
    job.training.optimizer.weight_decay = 0.1;
    job.output_folder = output.path();
    for (const RankRecord& record : RunRanks(job, ranks)) {
      EXPECT_TRUE(record.status.ok()) << record.status;
    }
    api::Model trained = job.training.model;
    trained.weights = "file://" + (output / "model.safetensors");
    const auto model = OpenModel(trained, 10, kScriptPicture, 1);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto parameters = (*model)->named_parameters();
    EXPECT_TRUE(torch::equal(parameters["frozen"], torch::ones({10}))) << ranks;
    EXPECT_TRUE(torch::equal(parameters["unused"], torch::ones({10}))) << ranks;
    const auto before = OpenModel(job.training.model, 10, kScriptPicture, 1);
    EXPECT_FALSE(torch::equal(parameters["weight"], (*before)->named_parameters()["weight"]));
  }
}

// As the caching allocator of LibTorch for CUDA; the class is in every build.
[[noreturn]] void ThrowCuda(const char* text) {
  TORCH_CHECK_WITH(OutOfMemoryError, false, text);
  std::abort();
}

// What LibTorch's parts for CUDA say where they have no type for it: as LibTorch's error, and as
// the interpreter of TorchScript passes it on.
const char* const kNoMemoryOnTheGpu[] = {
    "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "cuDNN error: CUDNN_STATUS_ALLOC_FAILED"};

TEST(ExceptionsTest, MemoryOfAGpuIsMemory) {
  try {
    ThrowCuda("Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 139.80 GiB");
  } catch (const std::exception& error) {
    EXPECT_TRUE(IsOutOfMemory(error));
    EXPECT_FALSE(CameFromCollective(error));
  }
  for (const char* text : kNoMemoryOnTheGpu) {
    EXPECT_TRUE(IsOutOfMemory(std::runtime_error(text))) << text;
    EXPECT_TRUE(IsOutOfMemory(c10::Error({__func__, __FILE__, __LINE__}, text))) << text;
    EXPECT_FALSE(IsOutOfMemory(std::invalid_argument(text))) << text;
  }
  EXPECT_FALSE(IsOutOfMemory(std::runtime_error("CUDA error: invalid device ordinal")));
  EXPECT_FALSE(IsOutOfMemory(std::runtime_error("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED")));
}

TEST(ExceptionsTest, NoMemoryOnAGpuIsNamedAsThatOfTheRank) {
  for (size_t i = 0; i <= std::size(kNoMemoryOnTheGpu); ++i) {
    TestJob job;
    job.training = MakeTraining("mlp", 4, 2);
    job.samples = 32;
    job.validation_samples = 16;
    job.before_evaluation_record = [i](int32_t rank) {
      if (rank != 1) return;
      if (i == std::size(kNoMemoryOnTheGpu)) ThrowCuda("Tried to allocate 20.00 MiB");
      TORCH_CHECK(false, kNoMemoryOnTheGpu[i]);
    };
    const std::vector<RankRecord> records = RunRanks(job, 2);
    EXPECT_TRUE(absl::IsResourceExhausted(records[1].status)) << records[1].status;
    EXPECT_THAT(std::string(records[1].status.message()),
                AllOf(StartsWith("rank 1, "), HasSubstr(": out of memory: "),
                      HasSubstr("spec.training.batchSizePerWorker")));
  }
}

TEST(ExceptionsTest, OnlyWhatCollectivesThrowIsTheLossOfARank) {
  EXPECT_TRUE(CameFromCollective(CollectiveError("x")));
  try {
    TORCH_CHECK_WITH(DistBackendError, false, "connection closed");
  } catch (const std::exception& error) {
    EXPECT_TRUE(CameFromCollective(error));
  }
  EXPECT_FALSE(CameFromCollective(std::runtime_error("connection closed by peer")));
  EXPECT_FALSE(CameFromCollective(std::bad_alloc()));
  EXPECT_TRUE(IsOutOfMemory(std::bad_alloc()));
  EXPECT_FALSE(IsOutOfMemory(std::runtime_error("the model does not like white")));
  EXPECT_THROW(Collectively([]() -> int { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_THROW(Collectively([]() -> int { ThrowCuda("CUDA out of memory. Tried to allocate"); }),
               c10::OutOfMemoryError);
  EXPECT_THROW(Collectively([]() -> int { throw std::runtime_error("reset"); }), CollectiveError);
  EXPECT_EQ(Collectively([] { return 7; }), 7);
}

}  // namespace
}  // namespace hetero::train
