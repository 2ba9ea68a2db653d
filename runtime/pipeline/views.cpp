#include "runtime/pipeline/views.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hetero::pipeline {
namespace {

constexpr int32_t kPicturesOfAView = 64;

class ViewsPipeline final : public Pipeline {
 public:
  ViewsPipeline(std::unique_ptr<Pipeline> one, int32_t view, int32_t count)
      : one_(std::move(one)), view_(view), count_(count) {}

  api::ImageShape output() const override { return one_->output(); }
  int32_t views() const override { return count_; }
  const TensorConversion& conversion() const override { return one_->conversion(); }

  absl::Status Run(const source::RawSample& sample, const SampleKey& key,
                   std::span<uint8_t> out) const override {
    if (static_cast<int64_t>(out.size()) != output_bytes()) {
      return absl::InvalidArgumentError(
          absl::StrCat("buffer of ", out.size(), " bytes for views of ", output_bytes(), " bytes"));
    }
    const size_t each = out.size() / static_cast<size_t>(count_);
    SampleKey of_view = key;
    for (int32_t i = 0; i < count_; ++i) {
      of_view.view = KeyOfView(view_, i);
      absl::Status status =
          one_->Run(sample, of_view, out.subspan(static_cast<size_t>(i) * each, each));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  std::vector<OperatorCost> costs() const override {
    std::vector<OperatorCost> costs = one_->costs();
    for (OperatorCost& cost : costs) cost.samples /= count_;
    return costs;
  }

 private:
  const std::unique_ptr<Pipeline> one_;
  const int32_t view_;
  const int32_t count_;
};

}  // namespace

int32_t KeyOfView(int32_t view, int32_t index) { return view * kPicturesOfAView + index; }

std::unique_ptr<Pipeline> MakeViews(std::unique_ptr<Pipeline> one, int32_t view, int32_t count) {
  if (view == 0 && count == 1) return one;
  return std::make_unique<ViewsPipeline>(std::move(one), view, count);
}

}  // namespace hetero::pipeline
