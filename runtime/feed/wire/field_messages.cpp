#include "runtime/feed/wire/field_messages.h"

#include <cstddef>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "hetero/v1/feed.pb.h"

namespace hetero::feed {
namespace {

constexpr int kMaxFields = 64;
constexpr size_t kMaxFieldName = 63;

v1::FieldType TypeOnWire(job::FieldType type) {
  switch (type) {
    case job::FieldType::kInt64:
      return v1::INT64;
    case job::FieldType::kFloat32:
      return v1::FLOAT32;
    case job::FieldType::kUint8:
      return v1::UINT8;
  }
  __builtin_unreachable();
}

std::optional<job::FieldType> TypeFromWire(v1::FieldType type) {
  for (const auto known :
       {job::FieldType::kInt64, job::FieldType::kFloat32, job::FieldType::kUint8}) {
    if (TypeOnWire(known) == type) return known;
  }
  return std::nullopt;
}

}  // namespace

void ToProto(const std::vector<FieldTensor>& fields, v1::FieldSet* out) {
  for (const FieldTensor& field : fields) {
    v1::FieldSet::Field* to = out->add_fields();
    to->set_name(field.spec.name);
    to->set_type(TypeOnWire(field.spec.type));
    to->mutable_shape()->Assign(field.spec.shape.begin(), field.spec.shape.end());
  }
}

absl::StatusOr<std::vector<job::FieldSpec>> AnnouncedFields(const v1::FrameHeader& header,
                                                            size_t left) {
  const auto bad = [&](auto... what) {
    return absl::DataLossError(
        absl::StrCat("batch frame of ticket ", header.ticket().id(), what...));
  };
  if (header.fields().fields_size() > kMaxFields) {
    return bad(": ", header.fields().fields_size(), " fields, ", kMaxFields, " at most");
  }
  std::vector<job::FieldSpec> specs;
  int64_t announced = 0;
  for (const v1::FieldSet::Field& field : header.fields().fields()) {
    if (field.name().empty() || field.name().size() > kMaxFieldName || field.name() == "image" ||
        (!specs.empty() && field.name() <= specs.back().name)) {
      return bad(": a field has no name of its own, or comes out of their order");
    }
    const std::optional<job::FieldType> type = TypeFromWire(field.type());
    if (!type) return bad(": a field of unknown type ", static_cast<int>(field.type()));
    int64_t bytes = job::BytesOf(*type);  // of one sample
    for (const int64_t dimension : field.shape()) {
      if (dimension <= 0 || bytes > kMaxTensorBytes / dimension) {
        return bad(": a field of an impossible shape");
      }
      bytes *= dimension;
    }
    if (header.ticket().count() > kMaxTensorBytes / bytes) return bad(": a field of over 2 GiB");
    announced += bytes * header.ticket().count();
    if (announced > kMaxTensorBytes || static_cast<uint64_t>(announced) > left) {
      return bad(": ", announced, " bytes of fields announced, ", left, " bytes sent");
    }
    specs.push_back({field.name(), *type, {field.shape().begin(), field.shape().end()}});
  }
  return specs;
}

}  // namespace hetero::feed
