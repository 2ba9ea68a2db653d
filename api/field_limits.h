#pragma once

#include "api/field_table.h"

// Forms of texts and kinds of limits that several fields of fields.h share. Internal to api.
namespace hetero::api {

// A web server's has no user and no query: those would be secrets.
inline constexpr char kDatasetUri[] =
    "^(synthetic://|file:///.+|s3://[a-z0-9][a-z0-9.-]+[a-z0-9](/.*)?|https://[^/?#@]+/[^?#]+)$";
inline constexpr char kStorageUri[] = "^(file:///.+|s3://[a-z0-9][a-z0-9.-]+[a-z0-9](/.*)?)$";
inline constexpr char kObjectUri[] =
    "^(file:///(.*[^/])|s3://[a-z0-9][a-z0-9.-]+[a-z0-9]/(.*[^/]))$";
// No slash ends it, or one place would have two names.
inline constexpr char kStoragePrefix[] =
    "^(s3://[a-z0-9][a-z0-9.-]+[a-z0-9](/.*[^/])?|https://[^/?#@]+(/[^?#]*[^/?#])?)$";
inline constexpr char kEndpoint[] =
    "^https?://([A-Za-z0-9.-]+|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?$";
inline constexpr char kSubdomain[] = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";
inline constexpr char kRfc1035Label[] = "^[a-z]([-a-z0-9]*[a-z0-9])?$";
inline constexpr char kAbsolutePath[] = "^/.+$";
inline constexpr char kPythonName[] = "^[A-Za-z_][A-Za-z0-9_]*$";
inline constexpr char kPythonModule[] = "^[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*$";
inline constexpr char kIdentifier[] = "^[A-Za-z0-9][A-Za-z0-9_.-]*$";
// As formats name fields: "jpg;png", "image/encoded", "json/label".
inline constexpr char kSampleField[] = "^[A-Za-z0-9_][A-Za-z0-9_./;-]*$";
// A tensor's or module's name, "layer1.0.bn1", or several: "layer*.bias".
inline constexpr char kTensorNames[] = "^[A-Za-z0-9_*][A-Za-z0-9_.*-]*$";
inline constexpr char kDomainPath[] =
    "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9][A-Za-z0-9/._~-]*$";
// A tensor's name in a batch: what Python can write as batch.NAME.
inline constexpr char kViewName[] = "^[a-z][a-z0-9_]*$";
inline constexpr char kDecimal[] = "^[0-9]+([.][0-9]+)?$";
// Of Kubernetes' quantities those with which memory is written; byte_size.h reads them.
inline constexpr char kByteSize[] = "^([1-9][0-9]{0,4}Mi|[1-9][0-9]?Gi)$";

inline constexpr Limits kRequiredField{.presence = Presence::kRequired};
inline constexpr Limits kDefaultedField{.presence = Presence::kDefaulted};

constexpr Limits Counted(Presence presence, double min, double max) {
  return {.presence = presence, .min = min, .max = max};
}
constexpr Limits AtLeast(double min, Presence presence = Presence::kOptional) {
  return {.presence = presence, .min = min};
}
constexpr Limits Above(double min, Presence presence = Presence::kOptional) {
  return {.presence = presence, .min = min, .above_min = true};
}
constexpr Limits Uri(const char* pattern, Presence presence = Presence::kOptional) {
  return {.presence = presence, .max_length = 1024, .pattern = pattern};
}

}  // namespace hetero::api
