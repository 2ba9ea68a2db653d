#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "runtime/job/philox.h"
#include "runtime/job/schedule.h"
#include "runtime/pipeline/image.h"
#include "runtime/pipeline/python_functions.h"

namespace hetero::pipeline {

// One step of the pipeline on uint8 pictures. Immutable and safe from any thread. The result is a
// function of the picture and of the numbers drawn, the same on every machine: integer arithmetic
// on pixels, and only +, -, *, / and sqrt of IEEE 754 on parameters.
class Operator {
 public:
  virtual ~Operator() = default;

  // Shape of the result for a picture of shape `input`; zero height and width stand for "varies
  // from picture to picture". kInvalidArgument, without a place, when such pictures cannot be
  // taken.
  virtual absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const = 0;

  // Writes the result into `*out`, which is not the storage of `in`. `in` has the shape that
  // OutputShape() accepted. kDataLoss: this picture's size cannot be taken.
  virtual absl::Status Apply(const ImageView& in, Image* out, job::RandomStream& random) const = 0;

  // The same where the result may stay where it is: `*result` is `in` when nothing changes, else
  // what was written into `*scratch`.
  virtual absl::Status Transform(const ImageView& in, Image* scratch, job::RandomStream& random,
                                 ImageView* result) const {
    absl::Status status = Apply(in, scratch, random);
    *result = scratch->view();
    return status;
  }

  // True for operators that keep the shape and can write into any memory of that size but the
  // storage of `in`: ApplyTo() does.
  virtual bool writes_anywhere() const { return false; }
  virtual absl::Status ApplyTo(const ImageView& in, uint8_t* out, job::RandomStream& random) const {
    return absl::UnimplementedError("writes into an Image only");
  }
};

// An operator that looks at one rectangle of the picture only, so that the rest need not be
// decoded.
class CroppingOperator : public Operator {
 public:
  // The rectangle of a picture of shape `input`.
  virtual Box Region(const api::ImageShape& input, job::RandomStream& random) const = 0;

  // What Apply() makes of the picture; the pixels of Region() lie in `part` at `inside`. `random`
  // goes on after Region().
  virtual absl::Status ApplyToRegion(const ImageView& part, const Box& inside, Image* out,
                                     job::RandomStream& random) const = 0;
};

using Operators = std::vector<std::unique_ptr<Operator>>;

// What an operator is made for, besides its parameters.
struct OperatorContext {
  job::Split split = job::Split::kTrain;
  base::Clock& clock;  // outlives the operators
  // Likewise. Null: Python operators are not run here.
  const PythonFunctions* python = nullptr;
};

// Every operator has a function Make<name of the manifest>(spec, context) -> Operators for
// MakeOperators(), whose header says what it may expect and gives.
template <typename T, typename... Args>
Operators One(Args&&... args) {
  Operators operators;
  operators.push_back(std::make_unique<T>(std::forward<Args>(args)...));
  return operators;
}

}  // namespace hetero::pipeline
