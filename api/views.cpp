#include "api/views.h"

#include <algorithm>

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

}  // namespace hetero::api
