#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/field_table.h"
#include "api/suggest.h"
#include "api/validate.h"
#include "api/views.h"

namespace hetero::api {
namespace {

void CheckViewNames(const std::vector<View>& views, Findings& findings) {
  std::map<std::string, size_t> first_index;
  for (size_t i = 0; i < views.size(); ++i) {
    const std::string path = Element("spec.views", i) + ".name";
    if (findings.Broken(path)) continue;
    const std::string& name = views[i].name;
    const auto [first, is_new] = first_index.emplace(name, i);
    if (!is_new) {
      findings.Add(path, absl::StrCat("'", name, "' is the name of ",
                                      Element("spec.views", first->second), " too"));
    }
    if (IsTakenByBatches(name)) {
      findings.Add(path,
                   absl::StrCat("'", name, "' names something else of a batch; choose another"));
    }
  }
}

void CheckViewsOfOperators(const Spec& spec, Findings& findings) {
  std::vector<std::string> known = {std::string(kImageView)};
  for (const View& view : FurtherViews(spec)) known.push_back(view.name);
  const bool several = HasSeveralViews(spec);
  for (size_t i = 0; i < spec.pipeline.size(); ++i) {
    const std::string path = Element("spec.pipeline", i);
    if (findings.Broken(path)) continue;
    const OperatorSpec& op = spec.pipeline[i];
    for (size_t k = 0; k < op.views.size(); ++k) {
      if (std::find(known.begin(), known.end(), op.views[k]) != known.end()) continue;
      findings.Add(
          Element(path + ".views", k),
          absl::StrCat("'", op.views[k], "' is none of spec.views; known are ", Join(known)));
    }
    const bool converts = op.op == OperatorKind::kNormalize || op.op == OperatorKind::kCast;
    if (several && op.placement == Placement::kTrainer && !converts) {
      findings.Add(path + ".placement",
                   "cannot be Trainer beside spec.views: the CPU workers make all views of a "
                   "sample whole; leave it out");
    }
  }
}

}  // namespace

void ValidateViews(const Spec& spec, Findings& findings) {
  if (findings.Broken("spec.views")) return;
  CheckViewNames(spec.views, findings);
  if (!findings.Broken("spec.pipeline")) CheckViewsOfOperators(spec, findings);
  if (HasSeveralViews(spec) && spec.dataset.has_mask() && !findings.Broken("spec.dataset.fields")) {
    findings.Add("spec.views",
                 absl::StrCat("samples have the field ", spec.dataset.mask_name(),
                              ", which goes with one view of a picture; leave out several views or "
                              "spec.dataset.fields.mask"));
  }
  if (HasSeveralViews(spec) && !spec.training.script && !findings.Broken("spec.training.script")) {
    findings.Add("spec.views",
                 "models take one view of a picture; several are for spec.training.script alone");
  }
}

}  // namespace hetero::api
