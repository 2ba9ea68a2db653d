#include "runtime/feed/cut_pipeline.h"

#include <algorithm>

#include "runtime/pipeline/views.h"

namespace hetero::feed {
namespace {

bool Converts(const api::OperatorSpec& spec) {
  return spec.op == api::OperatorKind::kNormalize || spec.op == api::OperatorKind::kCast;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CutPipeline>> CutPipeline::Create(
    const std::vector<api::OperatorSpec>& operators, const api::ImageShape& input, job::Split split,
    base::Clock& clock, const pipeline::PythonFunctions* python) {
  auto whole =
      pipeline::Pipeline::Create(operators, input, split, clock, 0, api::kImageView, python);
  if (!whole.ok()) return whole.status();
  auto cut = std::make_unique<CutPipeline>();
  cut->whole_ = *std::move(whole);
  const auto end = std::find_if(operators.begin(), operators.end(), Converts);
  bool needs_python = false;
  for (auto at = end; at != operators.begin();) {
    --at;
    needs_python = needs_python || at->op == api::OperatorKind::kPython;
    Cut next;
    // Fails where the size still varies: no cut there.
    auto front = pipeline::Pipeline::Create({operators.begin(), at}, input, split, clock, 0,
                                            api::kImageView, python);
    // Decoding is the worker's: it reads the stored bytes.
    if (front.ok() && !needs_python && at->op != api::OperatorKind::kDecode) {
      int32_t position = 0;
      for (auto before = operators.begin(); before != at; ++before) position += before->repeat;
      auto rest = pipeline::Pipeline::Create({at, end}, (*front)->output(), split, clock, position);
      if (!rest.ok()) return rest.status();
      next = {*std::move(front), *std::move(rest)};
    }
    cut->cuts_.push_back(std::move(next));
  }
  return cut;
}

absl::StatusOr<std::unique_ptr<CutPipeline>> CutPipeline::CreateUncut(
    const std::vector<api::OperatorSpec>& operators, const api::ImageShape& input, job::Split split,
    int32_t views, const pipeline::PythonFunctions* python) {
  auto one = pipeline::Pipeline::Create(operators, input, split, base::Clock::Real(), 0,
                                        api::kImageView, python);
  if (!one.ok()) return one.status();
  auto uncut = std::make_unique<CutPipeline>();
  uncut->whole_ = pipeline::MakeViews(*std::move(one), /*view=*/0, views);
  const auto end = std::find_if(operators.begin(), operators.end(), Converts);
  uncut->cuts_.resize(static_cast<size_t>(end - operators.begin()));
  return uncut;
}

bool CutPipeline::CanLeave(int32_t left) const {
  if (left == 0) return true;
  return left > 0 && left <= entries() && cuts_[static_cast<size_t>(left) - 1].front != nullptr;
}

const pipeline::Pipeline& CutPipeline::front(int32_t left) const {
  return left == 0 ? *whole_ : *cuts_[static_cast<size_t>(left) - 1].front;
}

const pipeline::Pipeline& CutPipeline::rest(int32_t left) const {
  return *cuts_[static_cast<size_t>(left) - 1].rest;
}

std::vector<pipeline::OperatorCost> CutPipeline::costs() const {
  std::vector<pipeline::OperatorCost> costs = whole_->costs();
  for (const Cut& cut : cuts_) {
    if (cut.front == nullptr) continue;
    const std::vector<pipeline::OperatorCost> of_front = cut.front->costs();
    for (size_t i = 0; i < of_front.size(); ++i) costs[i] += of_front[i];
  }
  return costs;
}

}  // namespace hetero::feed
