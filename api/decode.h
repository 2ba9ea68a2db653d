#pragma once

#include <string>
#include <vector>

#include "api/findings.h"
#include "api/hetero_training_job.h"
#include "nlohmann/json.hpp"

// JSON -> types by the tables of fields.h, strictly: unknown fields, wrong types, values outside
// their limits and missing required fields are all added to `findings` under their full path. JSON
// null is the same as absent.
namespace hetero::api {

// Whose text it is: an operator's may have more entries in some lists (Limits::max_added_items).
enum class Author { kPerson, kOperator };

// With `unknown`, the paths of fields that the tables do not have go there and are no findings.
void DecodeSpec(const nlohmann::json& json, Spec& spec, Findings& findings,
                std::vector<std::string>* unknown = nullptr, Author author = Author::kPerson);

// A list as spec.storage is one, which stands at `path`.
void DecodeStorage(const nlohmann::json& json, const std::string& path,
                   std::vector<StorageAccess>& storage, Findings& findings);

// One entry of spec.pipeline; paths begin at the entry.
void DecodeOperator(const nlohmann::json& json, OperatorSpec& op, Findings& findings);

// Keys of metadata that only Kubernetes reads (creationTimestamp, managedFields, ...) are skipped.
void DecodeMetadata(const nlohmann::json& json, Metadata& metadata, Findings& findings);

}  // namespace hetero::api
