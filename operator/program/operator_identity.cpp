#include "operator/program/operator_identity.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "api/job_status.h"
#include "api/labels.h"
#include "base/backoff.h"
#include "base/json_access.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace hetero::program {
namespace {

using base::FieldOf;
using base::TextOf;
using nlohmann::json;
using reconcile::OperatorIdentity;

constexpr int kAttempts = 5;
constexpr std::chrono::seconds kLongestPause{30};

std::string Base64(const std::string& text) { return absl::Base64Escape(text); }

std::string DataAt(const json& secret, const char* key) {
  std::string text;
  return absl::Base64Unescape(TextOf(FieldOf(secret, "data"), key), &text) ? text : "";
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

// What is to be written in place of `found`, which may be absent.
absl::StatusOr<OperatorIdentity> NextIdentity(const std::optional<OperatorIdentity>& found,
                                              base::WallTime now) {
  if (!found || found->ca_key_pem.empty()) return reconcile::IssueOperatorIdentity(now);
  return reconcile::RenewOperatorIdentity(*found, now);
}

// Whether the next try may well be answered otherwise.
bool MayPass(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
      return true;
    default:
      return false;
  }
}

void LogWritten(const kube::ObjectKey& secret, const std::optional<OperatorIdentity>& before,
                const OperatorIdentity& now) {
  const char* what = !before                        ? "operator identity made"
                     : before->ca_pem == now.ca_pem ? "operator identity renewed"
                                                    : "operator identity recreated: heads that run "
                                                      "now do not know it, their jobs go on unseen";
  log::Info(what, {{"secret", secret.ToString()}, {"expires", api::FormatTime(now.expires)}});
}

}  // namespace

json IdentityToSecret(const kube::ObjectKey& key, const OperatorIdentity& identity) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"type", "kubernetes.io/tls"},
          {"metadata",
           {{"name", key.name},
            {"namespace", key.name_space},
            {"labels", {{api::kManagedByLabel, api::kManagedByValue}}},
            {"annotations", {{api::kExpiresAnnotation, api::FormatTime(identity.expires)}}}}},
          {"data",
           {{"ca.crt", Base64(identity.ca_pem)},
            {"ca.key", Base64(identity.ca_key_pem)},
            {"tls.crt", Base64(identity.leaf.certificate_pem)},
            {"tls.key", Base64(identity.leaf.key_pem)}}}};
}

absl::StatusOr<OperatorIdentity> IdentityFromSecret(const json& secret) {
  OperatorIdentity identity;
  identity.ca_pem = DataAt(secret, "ca.crt");
  identity.ca_key_pem = DataAt(secret, "ca.key");
  identity.leaf.certificate_pem = DataAt(secret, "tls.crt");
  identity.leaf.key_pem = DataAt(secret, "tls.key");
  const json metadata = secret.is_object() ? secret.value("metadata", json()) : json();
  const absl::StatusOr<base::WallTime> expires =
      api::ParseTime(TextOf(FieldOf(metadata, "annotations"), api::kExpiresAnnotation));
  if (identity.ca_pem.empty() || identity.leaf.certificate_pem.empty() ||
      identity.leaf.key_pem.empty() || !expires.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("is not an operator's identity (ca.crt, tls.crt, tls.key and annotation ",
                     api::kExpiresAnnotation, "); delete it, and the operator makes a new one"));
  }
  identity.expires = *expires;
  return identity;
}

absl::StatusOr<OperatorIdentity> LoadOperatorIdentity(kube::Client& client, base::Clock& clock,
                                                      const kube::ObjectKey& secret) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const absl::StatusOr<json> stored = client.Get(kube::kSecrets, secret);
    if (!stored.ok() && !absl::IsNotFound(stored.status())) {
      return About(secret, "cannot be read", stored.status());
    }
    std::optional<OperatorIdentity> found;
    if (stored.ok()) {
      absl::StatusOr<OperatorIdentity> identity = IdentityFromSecret(*stored);
      if (!identity.ok()) return About(secret, "what was read", identity.status());
      found = *std::move(identity);
      const bool fresh = clock.WallNow() < found->expires - kRenewBefore;
      if (fresh && !found->ca_key_pem.empty()) return *std::move(found);
    }
    absl::StatusOr<OperatorIdentity> next = NextIdentity(found, clock.WallNow());
    if (!next.ok()) {
      return About(secret, "cannot be renewed; delete it, and the operator makes a new one",
                   next.status());
    }
    json object = IdentityToSecret(secret, *next);
    absl::Status written;
    if (found) {
      object["metadata"]["resourceVersion"] =
          TextOf(FieldOf(*stored, "metadata"), "resourceVersion");
      written = client.Update(kube::kSecrets, secret, object).status();
    } else {
      written = client.Create(kube::kSecrets, secret.name_space, object).status();
    }
    if (written.ok()) {
      LogWritten(secret, found, *next);
      return next;
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

absl::StatusOr<OperatorIdentity> AwaitOperatorIdentity(
    const std::function<absl::StatusOr<OperatorIdentity>()>& load, base::Clock& clock,
    std::stop_token stop) {
  base::Backoff backoff({.initial = std::chrono::milliseconds(200), .max = kLongestPause});
  for (;;) {
    absl::StatusOr<OperatorIdentity> identity = load();
    if (identity.ok() || !MayPass(identity.status())) return identity;
    const base::Duration pause = backoff.Next();
    log::Warning("the operator's identity cannot be loaded; trying again",
                 {{"error", identity.status().message()},
                  {"wait_seconds", std::chrono::duration<double>(pause).count()}});
    if (!clock.SleepFor(pause, stop)) return absl::CancelledError("stopped");
  }
}

}  // namespace hetero::program
