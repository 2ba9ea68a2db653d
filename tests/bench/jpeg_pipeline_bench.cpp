// JPEG to RandomResizedCrop 224 and flip, 500x375 source, against the chain that users of OpenCV
// write: libjpeg-turbo (which cv::imdecode calls) decodes the picture, then the same crop with
// cv::resize and cv::flip. cv::resize with INTER_LINEAR does less work than we do: it does not
// smooth when it shrinks; INTER_AREA does, and is printed too.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "runtime/job/philox.h"
#include "runtime/pipeline/crop.h"
#include "runtime/pipeline/decode.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/source/jpeg_writer.h"
#include "tests/bench/pairs.h"
#include "tests/unit/runtime/pipeline/plain_jpeg.h"

namespace hetero {
namespace {

constexpr int kPairs = 25;
constexpr int kPicturesPerRun = 32;
constexpr api::Size kSource{375, 500};

// Smooth noise at every scale, as photographs have; about 100 KB as a JPEG.
std::vector<uint8_t> Photograph(uint64_t seed) {
  cv::Mat sum(kSource.height, kSource.width, CV_32FC3, cv::Scalar::all(128));
  job::RandomStream random(seed, 0, 0, 0);
  double amplitude = 24;
  for (int cells = 3; cells < 400; cells *= 2, amplitude *= 0.72) {
    cv::Mat coarse(cells * 3 / 4 + 1, cells + 1, CV_32FC3), fine;
    for (int y = 0; y < coarse.rows; ++y) {
      for (int x = 0; x < coarse.cols; ++x) {
        for (int c = 0; c < 3; ++c) {
          coarse.at<cv::Vec3f>(y, x)[c] = float(random.Uniform(-amplitude, amplitude) * 2);
        }
      }
    }
    cv::resize(coarse, fine, sum.size(), 0, 0, cv::INTER_CUBIC);
    sum += fine;
  }
  cv::Mat bytes;
  sum.convertTo(bytes, CV_8UC3);
  return {bytes.datastart, bytes.dataend};
}

int Main() {
  cv::setNumThreads(1);
  api::OperatorSpec crop{.op = api::OperatorKind::kRandomResizedCrop};
  crop.size = api::Size{224, 224};
  const api::OperatorSpec flip{.op = api::OperatorKind::kHorizontalFlip, .probability = 0.5};
  const auto pipeline = pipeline::Pipeline::Create({crop, flip}, {0, 0, 3}, job::Split::kTrain);
  if (!pipeline.ok()) {
    std::fprintf(stderr, "%s\n", pipeline.status().ToString().c_str());
    return 1;
  }
  std::vector<source::RawSample> samples(4);
  size_t bytes = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].encoding = source::Encoding::kJpeg;
    const absl::Status status = source::EncodeJpeg(Photograph(i), kSource, &samples[i].bytes);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
    bytes += samples[i].bytes.size();
  }
  std::vector<uint8_t> out(224 * 224 * 3);
  const auto ours = [&](int pair) {
    for (int i = 0; i < kPicturesPerRun; ++i) {
      (void)(*pipeline)->Run(samples[size_t(i) % samples.size()],
                             {.seed = 1, .epoch = pair, .sample_id = i}, out);
    }
  };
  pipeline::Image decoded, part;
  const auto box_of = [](int pair, int i) {
    job::RandomStream place(1, pair, i, 0);
    return pipeline::DrawCrop(kSource, {0.08, 1}, {3.0 / 4, 4.0 / 3}, place);
  };
  const auto decode_boxes = [&](int pair) {
    for (int i = 0; i < kPicturesPerRun; ++i) {
      pipeline::Box inside;
      (void)pipeline::DecodeJpegBox(
          samples[size_t(i) % samples.size()].bytes,
          [&](const api::ImageShape&) { return box_of(pair, i); }, &part, &inside);
    }
  };
  int code = 0;
  const auto decode_all = [&](int) {
    for (int i = 0; i < kPicturesPerRun; ++i) {
      (void)pipeline::DecodeJpeg(samples[size_t(i) % samples.size()].bytes, &decoded);
    }
  };
  const auto decode_plainly = [&](int) {
    for (int i = 0; i < kPicturesPerRun; ++i) {
      pipeline::DecodeWithLibjpeg(samples[size_t(i) % samples.size()].bytes, &decoded, &code);
    }
  };
  const auto theirs = [&](int pair, int interpolation) {
    for (int i = 0; i < kPicturesPerRun; ++i) {
      pipeline::DecodeWithLibjpeg(samples[size_t(i) % samples.size()].bytes, &decoded, &code);
      job::RandomStream side(1, pair, i, 1);
      const pipeline::Box box = box_of(pair, i);
      const cv::Mat picture(kSource.height, kSource.width, CV_8UC3, decoded.bytes.data());
      cv::Mat resized, flipped;
      cv::resize(picture(cv::Rect(box.left, box.top, box.width, box.height)), resized, {224, 224},
                 0, 0, interpolation);
      if (side.NextDouble() < 0.5) {
        cv::flip(resized, flipped, 1);
      } else {
        flipped = resized;
      }
      std::copy_n(flipped.data, out.size(), out.data());
    }
  };
  std::printf("JPEG 500x375 (%.0f KB) to RandomResizedCrop 224 and flip, one core, %d pairs\n",
              double(bytes) / double(samples.size()) / 1000, kPairs);
  for (const auto& [name, interpolation] :
       {std::pair{"INTER_LINEAR", cv::INTER_LINEAR}, std::pair{"INTER_AREA", cv::INTER_AREA}}) {
    const int mode = interpolation;
    const bench::Comparison c = bench::Compare(kPairs, ours, [&](int pair) { theirs(pair, mode); });
    std::printf(
        "  %5.0f img/s, libjpeg-turbo + OpenCV %-12s %5.0f img/s: ratio %.2f [%.2f, %.2f]\n",
        kPicturesPerRun / c.ours, name, kPicturesPerRun / c.theirs, c.ratio, c.low, c.high);
  }
  for (const auto& [name, mine] :
       {std::pair<const char*, std::function<void(int)>>{"under the crop", decode_boxes},
        {"in full", decode_all}}) {
    const bench::Comparison c = bench::Compare(kPairs, mine, decode_plainly);
    std::printf("  decoding alone: %.3f ms %s, libjpeg-turbo %.3f ms: ratio %.2f [%.2f, %.2f]\n",
                c.ours / kPicturesPerRun * 1e3, name, c.theirs / kPicturesPerRun * 1e3, c.ratio,
                c.low, c.high);
  }
  return 0;
}

}  // namespace
}  // namespace hetero

int main() { return hetero::Main(); }
