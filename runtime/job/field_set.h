#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/hetero_training_job.h"

// What each sample of a job has beside its picture.
namespace hetero::job {

enum class FieldType { kInt64, kFloat32, kUint8 };
// "int64", "float32", "uint8": as numpy and safetensors have them.
std::string_view NameOf(FieldType type);
int64_t BytesOf(FieldType type);

// A tensor that every sample has. Its numbers are little-endian wherever they lie.
struct FieldSpec {
  std::string name;  // "label"
  FieldType type = FieldType::kInt64;
  std::vector<int32_t> shape;  // of one sample; empty: a single number

  int64_t numbers() const;  // of one sample
  int64_t bytes() const { return numbers() * BytesOf(type); }
  bool operator==(const FieldSpec&) const = default;
};

// All of them, in the order of their names, none of which is "image". Absent: a class, "label".
using FieldSet = std::optional<std::vector<FieldSpec>>;

FieldSet FieldsOf(const api::Label& label);

// With a mask beside them, uint8 [height, width]; a class is the number "label" then.
std::vector<FieldSpec> WithMask(const FieldSet& fields, const std::string& name,
                                const api::Size& size);

// "image uint8 [32,32,3]\n", what a checksum over named tensors reads before each tensor's bytes.
std::string FieldHeading(std::string_view name, std::string_view type,
                         const std::vector<int32_t>& shape);

}  // namespace hetero::job
