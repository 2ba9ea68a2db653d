#include "api/views.h"

#include <algorithm>
#include <iterator>

namespace hetero::api {

int32_t ImageViews(const Spec& spec) {
  for (const View& view : spec.views) {
    if (view.name == kImageView) return view.count;
  }
  return 1;
}

std::vector<View> FurtherViews(const Spec& spec) {
  std::vector<View> further;
  for (const View& view : spec.views) {
    if (view.name != kImageView) further.push_back(view);
  }
  return further;
}

bool HasSeveralViews(const Spec& spec) {
  return ImageViews(spec) > 1 || !FurtherViews(spec).empty();
}

bool IsFor(const OperatorSpec& op, std::string_view view) {
  return op.views.empty() || std::find(op.views.begin(), op.views.end(), view) != op.views.end();
}

bool IsTakenByBatches(std::string_view name) {
  constexpr std::string_view kTaken[] = {"label",      "labels", "id",   "ids",   "images",
                                         "sample_ids", "slots",  "step", "epoch", "weight",
                                         "count",      "place",  "keys", "to"};
  return std::find(std::begin(kTaken), std::end(kTaken), name) != std::end(kTaken);
}

}  // namespace hetero::api
