#include "runtime/pipeline/python_operator.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/pipeline/python_functions.h"

namespace hetero::pipeline {
namespace {

class PythonOperator final : public Operator {
 public:
  PythonOperator(const PythonFunctions* functions, int32_t function, bool training,
                 const api::ImageShape& output)
      : functions_(functions), function_(function), training_(training), output_(output) {}

  absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const override {
    return output_;
  }

  absl::Status Apply(const ImageView& in, Image* out, job::RandomStream& random) const override {
    if (functions_ == nullptr) {
      return absl::FailedPreconditionError("Python operators run in CPU workers only");
    }
    out->Reshape(output_);
    return functions_->Call(function_, random.key(), training_, in, out);
  }

 private:
  const PythonFunctions* const functions_;
  const int32_t function_;
  const bool training_;
  const api::ImageShape output_;
};

}  // namespace

absl::StatusOr<Operators> MakePython(const api::OperatorSpec& spec,
                                     const OperatorContext& context) {
  const std::vector<int32_t>& shape = spec.outputs->image.shape;
  const api::ImageShape output{shape[0], shape[1], shape[2]};
  if (int64_t{output.height} * output.width > kMaxPixels) {
    return absl::InvalidArgumentError(absl::StrCat("outputs.image.shape: ", ToString(output),
                                                   " has more than ", kMaxPixels, " pixels"));
  }
  int32_t function = 0;
  if (context.python != nullptr) {
    HETERO_ASSIGN_OR_RETURN(function, context.python->Find(spec));
  }
  return One<PythonOperator>(context.python, function, context.split == job::Split::kTrain, output);
}

}  // namespace hetero::pipeline
