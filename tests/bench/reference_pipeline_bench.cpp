// Ten Gaussian blurs, kernel 11, random sigma 0.1 to 2.0, on 224x224x3 uint8 pictures against
// OpenCV's own chain, one core each, once per instruction set of this machine.
#include <cstdio>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "hwy/highway.h"
#include "runtime/job/philox.h"
#include "runtime/pipeline/pipeline.h"
#include "tests/bench/pairs.h"

namespace hetero {
namespace {

constexpr int kPairs = 25;
constexpr int kPicturesPerRun = 16;
constexpr int kBlurs = 10;

bench::Comparison Measure(const pipeline::Pipeline& pipeline, source::RawSample& sample) {
  std::vector<uint8_t> out(sample.bytes.size());
  const auto ours = [&](int pair) {
    for (int i = 0; i < kPicturesPerRun; ++i) {
      (void)pipeline.Run(sample, {.seed = 1, .epoch = pair, .sample_id = i}, out);
    }
  };
  const auto theirs = [&](int pair) {
    for (int i = 0; i < kPicturesPerRun; ++i) {
      cv::Mat image(224, 224, CV_8UC3, sample.bytes.data()), blurred = image.clone();
      for (int k = 0; k < kBlurs; ++k) {
        // The sigma that the operator at position k draws.
        job::RandomStream random(1, pair, i, k);
        cv::GaussianBlur(blurred, blurred, {11, 11}, random.Uniform(0.1, 2.0), 0,
                         cv::BORDER_REFLECT_101);
      }
    }
  };
  return bench::Compare(kPairs, ours, theirs);
}

int Main() {
  cv::setNumThreads(1);
  const api::OperatorSpec blur = {.op = api::OperatorKind::kGaussianBlur,
                                  .repeat = kBlurs,
                                  .kernel_size = 11,
                                  .sigma = api::Range{0.1, 2.0}};
  source::RawSample sample;
  sample.shape = {224, 224, 3};
  const auto pipeline = pipeline::Pipeline::Create({blur}, sample.shape, job::Split::kTrain);
  if (!pipeline.ok()) {
    std::fprintf(stderr, "%s\n", pipeline.status().ToString().c_str());
    return 1;
  }
  sample.bytes.resize(224 * 224 * 3);
  job::RandomStream noise(1, 0, 0, 0);
  for (uint8_t& byte : sample.bytes) byte = static_cast<uint8_t>(noise.Below(256));

  std::printf("reference pipeline: 10 x GaussianBlur 11, 224x224x3, one core, %d pairs\n", kPairs);
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    const bench::Comparison c = Measure(**pipeline, sample);
    std::printf("  %-7s %6.0f img/s, OpenCV %5.0f img/s: ratio %.2f [%.2f, %.2f]\n",
                hwy::TargetName(target), kPicturesPerRun / c.ours, kPicturesPerRun / c.theirs,
                c.ratio, c.low, c.high);
  }
  return 0;
}

}  // namespace
}  // namespace hetero

int main() { return hetero::Main(); }
