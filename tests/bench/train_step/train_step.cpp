// Our training step for tests/bench/train_step/compare.py: the parts of TrainingLoop's step on
// pictures that are already there. Reads a number of steps per line from standard input, takes them
// and prints the CPU seconds and the loss.
//   train_step MODEL BATCH SIDE OPTIMIZER
#include <malloc.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>

#include "runtime/train/loss.h"
#include "runtime/train/model.h"
#include "runtime/train/optimizer.h"

namespace hetero::train {
namespace {

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
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

int Run(const std::string& name, int64_t batch, int32_t side, const std::string& optimizer_name) {
  at::set_num_threads(1);
  const auto model = MakeModel({name, 1000, {side, side, 3}}, 1);
  if (!model.ok()) {
    std::cerr << model.status() << "\n";
    return 2;
  }
  (*model)->train();
  Optimizer optimizer(OptimizerNamed(optimizer_name), (*model)->parameters());
  torch::Tensor images = torch::rand({batch, 3, side, side});
  if ((*model)->channels_last()) images = images.contiguous(torch::MemoryFormat::ChannelsLast);
  const torch::Tensor labels = torch::arange(batch);
  int64_t steps = 0;
  while (std::cin >> steps) {
    const double begin = CpuSeconds();
    double last = 0;
    for (int64_t i = 0; i < steps; ++i) {
      optimizer.ZeroGradients();
      const torch::Tensor loss = LossPerSample({}, (*model)->forward(images), labels).sum();
      (loss * (1.0 / static_cast<double>(batch))).backward();
      last = loss.item<double>();
      if (!std::isfinite(optimizer.GradientNorm())) return 1;
      optimizer.Step(1e-4);
    }
    std::cout << CpuSeconds() - begin << " " << last << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace hetero::train

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: train_step MODEL BATCH SIDE OPTIMIZER\n";
    return 2;
  }
  hetero::train::KeepMemory();
  return hetero::train::Run(argv[1], std::atoll(argv[2]), std::atoi(argv[3]), argv[4]);
}
