#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/encode.h"
#include "api/operators.h"
#include "api/suggest.h"
#include "api/validate.h"

namespace hetero::api {
namespace {

void CheckNames(const OperatorSpec& op, const OperatorRow& row, const std::string& path,
                Findings& findings) {
  std::vector<std::string> taken(row.required.begin(), row.required.end());
  taken.insert(taken.end(), row.optional.begin(), row.optional.end());
  const nlohmann::json given = EncodeObject(op);
  for (const auto& [key, unused] : given.items()) {
    if (key == "op" || key == "repeat" || key == "placement" || key == "views") continue;
    if (std::find(taken.begin(), taken.end(), key) != taken.end()) continue;
    findings.Add(Child(path, key),
                 taken.empty()
                     ? absl::StrCat(row.name, " takes no parameters")
                     : absl::StrCat(row.name, " does not take it; it takes ", Join(taken)));
  }
  for (const char* required : row.required) {
    if (!given.contains(required)) {
      findings.Add(Child(path, required), absl::StrCat("is required for ", row.name));
    }
  }
}

void CheckRanges(const OperatorSpec& op, const std::string& path, Findings& findings) {
  ForEachField<OperatorSpec>([&](const auto& field) {
    const auto& value = op.*(field.member);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::optional<Range>>) {
      if (!value.has_value() || value->min <= value->max) return;
      findings.Add(Child(path, field.name),
                   absl::StrCat("min ", value->min, " is above max ", value->max));
    }
  });
}

// Rules that hold for a parameter whoever takes it.
void CheckValues(const OperatorSpec& op, const std::string& path, Findings& findings) {
  if (op.kernel_size.has_value() && *op.kernel_size % 2 == 0) {
    findings.Add(Child(path, "kernelSize"), absl::StrCat("must be odd, got ", *op.kernel_size));
  }
  if (op.output_channels == 2) {
    findings.Add(Child(path, "outputChannels"), "must be 1 or 3, got 2");
  }
  if (op.mean.size() != op.std.size()) {
    findings.Add(Child(path, "std"), absl::StrCat("must have as many entries as mean (",
                                                  op.mean.size(), "), has ", op.std.size()));
  }
}

bool HasCpuWorkers(const Spec& spec) {
  return std::any_of(spec.roles.begin(), spec.roles.end(), [&](const Role& role) {
    return role.type == RoleType::kCpuWorker && role.replicas > 0;
  });
}

}  // namespace

void ValidateOperator(const OperatorSpec& op, const std::string& path, Findings& findings) {
  const OperatorRow& row = RowOf(op.op);
  CheckNames(op, row, path, findings);
  CheckRanges(op, path, findings);
  if (row.check != nullptr) row.check(op, path, findings);
  CheckValues(op, path, findings);
}

void ValidatePipeline(const Spec& spec, Findings& findings) {
  const bool has_workers = HasCpuWorkers(spec) || findings.Broken("spec.roles");
  const std::string* folder = nullptr;  // of the Python operator before
  for (size_t i = 0; i < spec.pipeline.size(); ++i) {
    const std::string path = Element("spec.pipeline", i);
    if (findings.Broken(path)) continue;
    ValidateOperator(spec.pipeline[i], path, findings);
    if (spec.pipeline[i].op != OperatorKind::kPython) continue;
    // A process knows one module of a name.
    const std::string* const first = folder;
    folder = &spec.pipeline[i].path;
    if (first != nullptr && *first != *folder) {
      findings.Add(Child(path, "path"),
                   "all Python operators have one; put their modules into one folder");
    }
    if (!has_workers) {
      findings.Add(path,
                   "Python operators run on CPU workers, and the job has none; give spec.roles one "
                   "of type CPUWorker with replicas of at least 1");
    }
  }
}

}  // namespace hetero::api
