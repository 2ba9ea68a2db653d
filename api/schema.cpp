#include "api/schema.h"

#include <algorithm>

#include "api/encode.h"
#include "api/fields.h"

namespace hetero::api {
namespace {

using Kind = SchemaNode::Kind;

template <typename T>
void Describe(const Limits& limits, SchemaNode& node);

template <typename T>
std::vector<SchemaNode> DescribeFields(const Limits* range) {
  std::vector<SchemaNode> nodes;
  const T initial{};
  ForEachField<T>([&](const auto& field) {
    using Member = std::remove_cvref_t<decltype(initial.*(field.member))>;
    SchemaNode& node = nodes.emplace_back();
    node.name = field.name;
    node.limits = field.limits;
    if (range != nullptr) {
      node.limits = *range;
      node.limits.presence = Presence::kRequired;
    }
    Describe<Member>(node.limits, node);
    if (field.limits.presence != Presence::kDefaulted) return;
    node.default_value = node.kind == Kind::kObject
                             ? nlohmann::json::object()
                             : EncodeValue(initial.*(field.member), field.limits);
  });
  return nodes;
}

template <typename T>
void Describe(const Limits& limits, SchemaNode& node) {
  if constexpr (IsOptional<T>::value) {
    Describe<typename T::value_type>(limits, node);
  } else if constexpr (IsVector<T>::value) {
    node.kind = Kind::kList;
    SchemaNode& element = node.element.emplace_back();
    element.limits = limits;
    Describe<typename T::value_type>(limits, element);
  } else if constexpr (std::is_same_v<T, bool>) {
    node.kind = Kind::kBoolean;
  } else if constexpr (std::is_integral_v<T>) {
    node.kind = Kind::kInteger;
    node.format = sizeof(T) == 4 ? "int32" : "int64";
  } else if constexpr (std::is_same_v<T, double>) {
    node.kind = Kind::kNumber;
    node.format = "double";
  } else if constexpr (std::is_same_v<T, std::string>) {
    node.kind = limits.open_object ? Kind::kOpenObject : Kind::kString;
    if (limits.only != nullptr) node.values = {limits.only};
  } else if constexpr (std::is_enum_v<T>) {
    node.kind = Kind::kString;
    node.values = AllNames<T>();
  } else if constexpr (std::is_same_v<T, StringMap>) {
    node.kind = Kind::kStringMap;
  } else {
    node.fields = DescribeFields<T>(std::is_same_v<T, Range> ? &limits : nullptr);
  }
}

void Collect(const SchemaNode& node, const std::string& path, std::vector<std::string>& paths) {
  for (const SchemaNode& field : node.fields) {
    const std::string child = Child(path, field.name);
    paths.push_back(child);
    Collect(field, child, paths);
    for (const SchemaNode& element : field.element) Collect(element, child + "[]", paths);
  }
}

}  // namespace

const SchemaNode* SchemaNode::Find(std::string_view field) const {
  for (const SchemaNode& node : fields) {
    if (node.name == field) return &node;
  }
  return nullptr;
}

std::vector<std::string> SchemaNode::FieldNames() const {
  std::vector<std::string> names;
  for (const SchemaNode& node : fields) names.push_back(node.name);
  return names;
}

const SchemaNode& JobSchema() {
  static const SchemaNode& schema = *[] {
    auto* root = new SchemaNode;
    SchemaNode& metadata = root->fields.emplace_back();
    metadata.name = "metadata";
    metadata.fields = DescribeFields<Metadata>(nullptr);
    SchemaNode& spec = root->fields.emplace_back();
    spec.name = "spec";
    spec.fields = DescribeFields<Spec>(nullptr);
    return root;
  }();
  return schema;
}

std::vector<std::string> KnownFieldPaths() {
  std::vector<std::string> paths;
  Collect(*JobSchema().Find("spec"), "spec", paths);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace hetero::api
