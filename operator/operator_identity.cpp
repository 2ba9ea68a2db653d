#include "operator/operator_identity.h"

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "operator/api/job_status.h"
#include "operator/children/names.h"

namespace hetero::program {
namespace {

using nlohmann::json;
using reconcile::OperatorIdentity;

constexpr char kExpires[] = "training.hetero.dev/expires";
constexpr int kAttempts = 5;

std::string Base64(const std::string& text) { return absl::Base64Escape(text); }

// A string deep in an object of any shape; empty when it is not there.
std::string TextAt(const json& object, const char* outer, const char* inner) {
  if (!object.is_object()) return "";
  const auto map = object.find(outer);
  if (map == object.end() || !map->is_object()) return "";
  const auto value = map->find(inner);
  return value != map->end() && value->is_string() ? value->get<std::string>() : "";
}

std::string DataAt(const json& secret, const char* key) {
  std::string text;
  return absl::Base64Unescape(TextAt(secret, "data", key), &text) ? text : "";
}

absl::Status About(const kube::ObjectKey& secret, const char* doing, const absl::Status& status) {
  std::string message =
      absl::StrCat("Secret ", secret.ToString(), ": ", doing, ": ", status.message());
  if (absl::IsPermissionDenied(status)) {
    absl::StrAppend(&message,
                    "; the operator's service account needs create on secrets of its namespace, "
                    "and get and update on this one");
  }
  return absl::Status(status.code(), message);
}

}  // namespace

json IdentityToSecret(const kube::ObjectKey& key, const OperatorIdentity& identity) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"type", "kubernetes.io/tls"},
          {"metadata",
           {{"name", key.name},
            {"namespace", key.name_space},
            {"labels", {{children::kManagedByLabel, children::kManagedByValue}}},
            {"annotations", {{kExpires, api::FormatTime(identity.expires)}}}}},
          {"data",
           {{"ca.crt", Base64(identity.ca_pem)},
            {"tls.crt", Base64(identity.leaf.certificate_pem)},
            {"tls.key", Base64(identity.leaf.key_pem)}}}};
}

absl::StatusOr<OperatorIdentity> IdentityFromSecret(const json& secret) {
  OperatorIdentity identity;
  identity.ca_pem = DataAt(secret, "ca.crt");
  identity.leaf.certificate_pem = DataAt(secret, "tls.crt");
  identity.leaf.key_pem = DataAt(secret, "tls.key");
  const json metadata = secret.is_object() ? secret.value("metadata", json()) : json();
  const absl::StatusOr<base::WallTime> expires =
      api::ParseTime(TextAt(metadata, "annotations", kExpires));
  if (identity.ca_pem.empty() || identity.leaf.certificate_pem.empty() ||
      identity.leaf.key_pem.empty() || !expires.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("is not an operator's identity (ca.crt, tls.crt, tls.key and annotation ",
                     kExpires, "); delete it, and the operator makes a new one"));
  }
  identity.expires = *expires;
  return identity;
}

absl::StatusOr<OperatorIdentity> LoadOperatorIdentity(kube::Client& client, base::Clock& clock,
                                                      const kube::ObjectKey& secret) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const absl::StatusOr<json> found = client.Get(kube::kSecrets, secret);
    if (!found.ok() && !absl::IsNotFound(found.status())) {
      return About(secret, "cannot be read", found.status());
    }
    if (found.ok()) {
      absl::StatusOr<OperatorIdentity> identity = IdentityFromSecret(*found);
      if (!identity.ok()) return About(secret, "what was read", identity.status());
      if (clock.WallNow() < identity->expires - kRenewBefore) return identity;
    }
    HETERO_ASSIGN_OR_RETURN(OperatorIdentity issued,
                            reconcile::IssueOperatorIdentity(clock.WallNow()));
    json object = IdentityToSecret(secret, issued);
    absl::Status written;
    if (found.ok()) {
      object["metadata"]["resourceVersion"] = TextAt(*found, "metadata", "resourceVersion");
      written = client.Update(kube::kSecrets, secret, object).status();
    } else {
      written = client.Create(kube::kSecrets, secret.name_space, object).status();
    }
    if (written.ok()) {
      log::Info(found.ok() ? "operator identity renewed" : "operator identity made",
                {{"secret", secret.ToString()}, {"expires", api::FormatTime(issued.expires)}});
      return issued;
    }
    if (!absl::IsAlreadyExists(written) && !absl::IsAborted(written) &&
        !absl::IsNotFound(written)) {
      return About(secret, "cannot be written", written);
    }
  }
  return absl::UnavailableError(absl::StrCat("Secret ", secret.ToString(),
                                             ": others keep changing ",
                                             "it; see who writes it with kubectl get -o yaml "
                                             "--show-managed-fields"));
}

}  // namespace hetero::program
