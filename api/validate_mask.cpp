#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "api/encode.h"
#include "api/operators.h"
#include "api/validate.h"
#include "api/views.h"

namespace hetero::api {
namespace {

constexpr char kMaskFieldPath[] = "spec.dataset.fields.mask";
constexpr char kMaskPath[] = "spec.dataset.mask";

void CheckMaskOf(const Dataset& dataset, Findings& findings) {
  if (dataset.mask && !dataset.has_mask()) {
    findings.Add(kMaskPath, absl::StrCat("is taken only with ", kMaskFieldPath,
                                         ", which says what the dataset calls the masks"));
  }
  const std::string name = dataset.mask_name();
  if (name == kImageView || IsTakenByBatches(name)) {
    findings.Add(Child(kMaskPath, "name"),
                 absl::StrCat(name, " names something else of a batch; choose another"));
  }
  if (!dataset.validation || findings.Broken("spec.dataset.validation")) return;
  if (dataset.has_mask() == !dataset.validation->fields.mask.empty()) return;
  findings.Add("spec.dataset.validation.fields.mask",
               dataset.has_mask()
                   ? absl::StrCat("is required beside ", kMaskFieldPath, ": all samples have one")
                   : absl::StrCat("is taken only with ", kMaskFieldPath, ": no sample has one"));
}

// Of an entry in a job whose samples have a mask.
void CheckMaskMoves(const OperatorSpec& op, const std::string& name, const std::string& path,
                    Findings& findings) {
  const char* const op_name = OperatorName(op.op);
  const bool also = std::find(op.also.begin(), op.also.end(), name) != op.also.end();
  const Geometry geometry = GeometryOf(op.op);
  if (geometry == Geometry::kMoves && !also) {
    findings.Add(Child(path, "also"),
                 absl::StrCat(op_name, " moves the picture's pixels and would leave those of the ",
                              "field ", name, "; write also: [", name, "]"));
  }
  if (geometry == Geometry::kUnknown) {
    findings.Add(path, absl::StrCat(op_name, " may move the picture's pixels in a way that is not ",
                                    "repeated for the field ", name,
                                    "; use Rotate, flips and crops in its place"));
  }
  if (op.placement == Placement::kTrainer) {
    findings.Add(Child(path, "placement"),
                 absl::StrCat("must not be Trainer where samples have the field ", name,
                              ", which comes from where the sample is read"));
  }
}

void CheckMaskNames(const OperatorSpec& op, const Dataset& dataset, const std::string& path,
                    Findings& findings) {
  for (size_t i = 0; i < op.also.size(); ++i) {
    const std::string entry = Element(Child(path, "also"), i);
    const auto before = op.also.begin() + static_cast<std::ptrdiff_t>(i);
    if (!dataset.has_mask() || op.also[i] != dataset.mask_name()) {
      findings.Add(entry, absl::StrCat("there is no mask of the name ", op.also[i],
                                       dataset.has_mask()
                                           ? absl::StrCat("; there is ", dataset.mask_name())
                                           : absl::StrCat("; name its field in ", kMaskFieldPath)));
    } else if (std::find(op.also.begin(), before, op.also[i]) != before) {
      findings.Add(entry, absl::StrCat(op.also[i], " is given twice"));
    }
  }
}

}  // namespace

void ValidateMask(const Spec& spec, Findings& findings) {
  const Dataset& dataset = spec.dataset;
  if (findings.Broken("spec.dataset.fields") || findings.Broken(kMaskPath)) return;
  CheckMaskOf(dataset, findings);
  for (size_t i = 0; i < spec.pipeline.size(); ++i) {
    const std::string path = Element("spec.pipeline", i);
    if (findings.Broken(path)) continue;
    CheckMaskNames(spec.pipeline[i], dataset, path, findings);
    if (dataset.has_mask()) CheckMaskMoves(spec.pipeline[i], dataset.mask_name(), path, findings);
  }
  if (!dataset.has_mask() || spec.training.script || findings.Broken("spec.training.script")) {
    return;
  }
  findings.Add(kMaskFieldPath,
               absl::StrCat("models take picture and class, and the field ", dataset.mask_name(),
                            " is for spec.training.script alone"));
}

}  // namespace hetero::api
