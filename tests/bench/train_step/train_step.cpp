// Our training step for tests/bench/train_step/compare.py: the parts of TrainingLoop's step on
// pictures that are already there. Reads a number of steps per line from standard input, takes them
// and prints the CPU seconds and the loss. With RANKS 2 a second process takes the same steps, with
// DDP between them, and the seconds are those of both. With DEVICE cuda, which the build for GPUs
// knows, the steps are the first GPU's, and the seconds those of the clock: the host's CPU time
// says nothing of them.
//   train_step MODEL BATCH SIDE OPTIMIZER [RANKS [DEVICE]]
#include <malloc.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <string>

#include "runtime/train/data_parallel/data_parallel.h"
#include "runtime/train/device/device.h"
#include "runtime/train/models/loss.h"
#include "runtime/train/models/model.h"
#include "runtime/train/optimizer/optimizer.h"
#include "runtime/train/process_group/gloo_group.h"
#include "tests/bench/train_step/folder_store.h"

namespace hetero::train {
namespace {

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double ClockSeconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// As hetero-trainer's main().
void KeepMemory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);
}

api::Optimizer OptimizerNamed(const std::string& name) {
  api::Optimizer optimizer;
  optimizer.name = name == "SGD" ? api::OptimizerKind::kSgd : api::OptimizerKind::kAdamW;
  optimizer.learning_rate = 1e-4;
  optimizer.momentum = name == "SGD" ? 0.9 : 0;
  optimizer.weight_decay = 1e-4;
  return optimizer;
}

struct Arguments {
  std::string model;
  int64_t batch = 1;
  int32_t side = 224;
  std::string optimizer;
  int32_t ranks = 1;
  bool gpu = false;
};

std::unique_ptr<Device> OpenDevice(const Arguments& arguments) {
  if (!arguments.gpu) return MakeCpuDevice();
  auto device = OpenGpu();
  TORCH_CHECK(device.ok(), device.status().ToString());
  return *std::move(device);
}

// One rank's model, and its steps.
class Rank {
 public:
  Rank(const Arguments& arguments, int32_t rank, const std::string& folder)
      : batch_(arguments.batch),
        gpu_(arguments.gpu),
        device_(OpenDevice(arguments)),
        model_(Open(arguments, device_->place())),
        optimizer_(OptimizerNamed(arguments.optimizer), model_->parameters()) {
    if (arguments.ranks > 1) {
      group_ = std::make_unique<GlooGroup>(
          GlooGroup::Options{.rank = rank, .world_size = arguments.ranks, .host = "127.0.0.1"},
          std::make_shared<FolderStore>(folder), base::Clock::Real(), std::stop_token());
      data_parallel_ = std::make_unique<DataParallel>(*model_, *group_, base::Clock::Real());
    }
    images_ = torch::rand({batch_, 3, arguments.side, arguments.side});
    if (model_->channels_last()) images_ = images_.contiguous(torch::MemoryFormat::ChannelsLast);
    images_ = images_.to(device_->place());
    labels_ = torch::arange(batch_).to(device_->place());
  }

  // CPU seconds of this process, on a GPU those until it has done the last step.
  double TakeSteps(int64_t steps) {
    const double begin = gpu_ ? ClockSeconds() : CpuSeconds();
    for (int64_t i = 0; i < steps; ++i) TakeStep();
    // What is read back now was asked of the GPU after the last step.
    if (gpu_) torch::zeros({1}, device_->place()).item<float>();
    return (gpu_ ? ClockSeconds() : CpuSeconds()) - begin;
  }
  double loss() const { return loss_; }

 private:
  static std::shared_ptr<Model> Open(const Arguments& arguments, torch::Device place) {
    const auto model = MakeModel({arguments.model, 1000, {arguments.side, arguments.side, 3}}, 1);
    TORCH_CHECK(model.ok(), model.status().ToString());
    (*model)->train();
    (*model)->to(place);
    return *model;
  }

  void TakeStep() {
    optimizer_.DropGradients(data_parallel_ ? Optimizer::Keeper::kBuckets
                                            : Optimizer::Keeper::kNobody);
    if (data_parallel_) data_parallel_->BeforeForward();
    const torch::Tensor loss = LossPerSample({}, model_->forward(images_), labels_).sum();
    if (data_parallel_) data_parallel_->BeforeBackward(loss);
    (loss * (1.0 / static_cast<double>(batch_))).backward();
    loss_ = loss.item<double>();
    TORCH_CHECK(std::isfinite(optimizer_.GradientNorm()));
    if (data_parallel_) data_parallel_->BroadcastBuffers();
    optimizer_.Step(1e-4);
  }

  int64_t batch_;
  bool gpu_;
  std::unique_ptr<Device> device_;
  std::shared_ptr<Model> model_;
  Optimizer optimizer_;
  std::unique_ptr<GlooGroup> group_;
  std::unique_ptr<DataParallel> data_parallel_;
  torch::Tensor images_, labels_;
  double loss_ = 0;
};

// The other rank: a process that is told by a pipe how many steps to take.
class Peer {
 public:
  explicit Peer(const Arguments& arguments, const std::string& folder) {
    int down[2], up[2];
    TORCH_CHECK(pipe(down) == 0 && pipe(up) == 0);
    child_ = fork();
    if (child_ == 0) {
      close(down[1]);
      close(up[0]);
      at::set_num_threads(1);
      Rank rank(arguments, 1, folder);
      for (int64_t steps = 0; read(down[0], &steps, sizeof(steps)) == sizeof(steps);) {
        const double seconds = rank.TakeSteps(steps);
        if (write(up[1], &seconds, sizeof(seconds)) != sizeof(seconds)) break;
      }
      _exit(0);
    }
    close(down[0]);
    close(up[1]);
    to_ = down[1];
    from_ = up[0];
  }
  ~Peer() {
    close(to_);
    waitpid(child_, nullptr, 0);
  }
  void Begin(int64_t steps) { TORCH_CHECK(write(to_, &steps, sizeof(steps)) == sizeof(steps)); }
  double End() {
    double seconds = 0;
    TORCH_CHECK(read(from_, &seconds, sizeof(seconds)) == sizeof(seconds));
    return seconds;
  }

 private:
  pid_t child_ = 0;
  int to_ = -1, from_ = -1;
};

int Run(const Arguments& arguments) {
  char folder[] = "/tmp/train-step-XXXXXX";
  TORCH_CHECK(mkdtemp(folder) != nullptr);
  // Before LibTorch has threads.
  std::unique_ptr<Peer> peer;
  if (arguments.ranks > 1) peer = std::make_unique<Peer>(arguments, folder);
  at::set_num_threads(1);
  {
    Rank rank(arguments, 0, folder);
    for (int64_t steps = 0; std::cin >> steps;) {
      if (peer) peer->Begin(steps);
      double seconds = rank.TakeSteps(steps);
      if (peer) seconds += peer->End();
      std::cout << seconds << " " << rank.loss() << std::endl;
    }
  }
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace hetero::train

int main(int argc, char** argv) {
  const bool gpu = argc == 7 && std::string(argv[6]) == "cuda";
  const bool two_gpus = gpu && std::atoi(argv[5]) > 1;  // of two processes, each has the first one
  if (argc < 5 || argc > 7 || two_gpus || (argc == 7 && !gpu && std::string(argv[6]) != "cpu")) {
    std::cerr << "usage: train_step MODEL BATCH SIDE OPTIMIZER [RANKS [cpu|cuda]], on cuda one "
                 "rank\n";
    return 2;
  }
  hetero::train::KeepMemory();
  return hetero::train::Run({.model = argv[1],
                             .batch = std::atoll(argv[2]),
                             .side = std::atoi(argv[3]),
                             .optimizer = argv[4],
                             .ranks = argc > 5 ? std::atoi(argv[5]) : 1,
                             .gpu = gpu});
}
