#pragma once

#include <cstdint>
#include <random>

#include "tests/unit/runtime/insight/rules/played_job.h"

// Jobs as people run them, drawn by a seed.
namespace hetero::insight {

// Draws of one job; `what` keeps them apart from those of others with the same seed.
class Draw {
 public:
  Draw(uint64_t seed, uint64_t what) : random_(seed * 1000 + what) {}
  double Between(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random_);
  }
  int32_t Whole(int32_t least, int32_t most) {
    return std::uniform_int_distribution<int32_t>(least, most)(random_);
  }
  bool Coin() { return Whole(0, 1) == 1; }

 private:
  std::mt19937_64 random_;
};

// Of one step of a rank, with nothing to wait for.
double StepSeconds(const PlayedJob& job);

// Of the operators on CPU workers, in seconds.
double CpuPerSample(const PlayedJob& job);

// Sets what a sample costs so that the workers can do `headroom` times the demand; reading is
// `read` of it.
void Fit(PlayedJob& job, double headroom, double read);

// The same pace in batches of 64.
void TakeSmallerSteps(PlayedJob& job);

// Gives each rank a network for `room` times what it takes.
void Connect(PlayedJob& job, double room = 3);

// Of ranks with GPUs and CPU workers, each on a machine of its own.
PlayedJob Photographs(Draw& draw, int32_t ranks, int32_t workers, double headroom);
PlayedJob AnyPhotographs(Draw& draw);

// Ranks compute on the CPU.
PlayedJob CpuRanks(Draw& draw);

// Either, with a script.
PlayedJob AnyScript(Draw& draw);

// No CPU workers: each rank's host makes its batches.
PlayedJob OwnCores(Draw& draw, double headroom, double read);

// Of three shapes, with nothing wrong: CPU workers can do 1.3 to 1.6 times what trainers take.
PlayedJob BalancedGpuJob(uint64_t seed);
PlayedJob CpuOnlyJob(uint64_t seed);
PlayedJob ScriptJob(uint64_t seed);

}  // namespace hetero::insight
