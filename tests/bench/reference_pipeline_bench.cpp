// Reference workload a's pipeline (ten Gaussian blurs, kernel 11, on 224x224x3) against OpenCV's
// own chain, one core each, in alternating pairs; medians of CPU seconds. Prints one line with the
// ratio.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "runtime/job/philox.h"
#include "runtime/pipeline/pipeline.h"

namespace hetero {
namespace {

constexpr int kPairs = 25;
constexpr int kPicturesPerRun = 16;
constexpr int kBlurs = 10;

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

int Main() {
  cv::setNumThreads(1);
  const api::OperatorSpec blur = {.op = api::OperatorKind::kGaussianBlur,
                                  .repeat = kBlurs,
                                  .kernel_size = 11,
                                  .sigma = api::Range{0.1, 2.0}};
  const api::ImageShape shape = {224, 224, 3};
  auto pipeline = pipeline::Pipeline::Create({blur}, shape, job::Split::kTrain);
  if (!pipeline.ok()) {
    std::fprintf(stderr, "%s\n", pipeline.status().ToString().c_str());
    return 1;
  }
  source::RawSample sample;
  sample.shape = shape;
  sample.bytes.resize(224 * 224 * 3);
  job::RandomStream noise(1, 0, 0, 0);
  for (uint8_t& byte : sample.bytes) byte = static_cast<uint8_t>(noise.Below(256));
  std::vector<uint8_t> out(sample.bytes.size());

  std::vector<double> ours, theirs, ratios;
  for (int pair = 0; pair <= kPairs; ++pair) {
    double begin = CpuSeconds();
    for (int i = 0; i < kPicturesPerRun; ++i) {
      (void)(*pipeline)->Run(sample, {.seed = 1, .epoch = pair, .sample_id = i}, out);
    }
    const double own = (CpuSeconds() - begin) / kPicturesPerRun;
    begin = CpuSeconds();
    for (int i = 0; i < kPicturesPerRun; ++i) {
      cv::Mat image(224, 224, CV_8UC3, sample.bytes.data()), blurred = image.clone();
      job::RandomStream random(1, pair, i, 0);
      for (int k = 0; k < kBlurs; ++k) {
        cv::GaussianBlur(blurred, blurred, {11, 11}, random.Uniform(0.1, 2.0), 0,
                         cv::BORDER_REFLECT_101);
      }
    }
    const double opencv = (CpuSeconds() - begin) / kPicturesPerRun;
    if (pair == 0) continue;  // warm-up
    ours.push_back(own);
    theirs.push_back(opencv);
    ratios.push_back(opencv / own);
  }
  std::printf(
      "reference pipeline (10 x GaussianBlur 11, 224x224x3), one core: %.0f img/s, OpenCV %.0f "
      "img/s, "
      "ratio %.2f (median of %d pairs, CPU seconds)\n",
      1 / Median(ours), 1 / Median(theirs), Median(ratios), kPairs);
  return 0;
}

}  // namespace
}  // namespace hetero

int main() { return hetero::Main(); }
