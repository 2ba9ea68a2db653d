#include "tests/integration/e2e/support/intruder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "api/labels.h"
#include "base/clock.h"
#include "operator/reconcile/certificates.h"
#include "tests/integration/e2e/support/nodes.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {

namespace {

using std::chrono::seconds;

constexpr char kProgram[] = "knock";

json SecretOf(const std::string& name_space, const std::string& name) {
  const json secret = ControlPlane::Get().Object(kube::kSecrets, {name_space, name});
  EXPECT_TRUE(secret.is_object()) << "no Secret " << name_space << "/" << name;
  return secret.is_object() ? secret.value("data", json::object()) : json::object();
}

std::string Decoded(const json& data, const std::string& key) {
  std::string text;
  EXPECT_TRUE(absl::Base64Unescape(data.value(key, ""), &text) && !text.empty()) << key;
  return text;
}

reconcile::OperatorIdentity OperatorsOwn() {
  const json data = SecretOf(kSystemNamespace, "hetero-operator-identity");
  reconcile::OperatorIdentity identity;
  identity.ca_pem = Decoded(data, "ca.crt");
  identity.ca_key_pem = Decoded(data, "ca.key");
  identity.leaf.certificate_pem = Decoded(data, "tls.crt");
  identity.leaf.key_pem = Decoded(data, "tls.key");
  return identity;
}

json PodOf(const std::string& name_space, const std::string& name, const std::string& job_uid) {
  json labels = {{"app", "intruder"}};
  if (!job_uid.empty()) labels[api::kJobUidLabel] = job_uid;
  const json container = {
      {"name", "runtime"},
      {"image", "hetero-runtime:0.3.0"},
      {"command", {"/data/knock", "wait"}},
      {"volumeMounts", json::array({{{"name", "data"}, {"mountPath", "/data"}}})},
      {"securityContext",
       {{"allowPrivilegeEscalation", false},
        {"readOnlyRootFilesystem", true},
        {"capabilities", {{"drop", {"ALL"}}}}}}};
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", name}, {"namespace", name_space}, {"labels", labels}}},
          {"spec",
           {{"containers", json::array({container})},
            {"volumes",
             json::array({{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}})},
            {"automountServiceAccountToken", false},
            {"terminationGracePeriodSeconds", 1},
            {"securityContext",
             {{"runAsNonRoot", true},
              {"runAsUser", 65532},
              {"seccompProfile", {{"type", "RuntimeDefault"}}}}}}}};
}

}  // namespace

std::string Loot::Keep(const std::string& name, const std::string& certificate,
                       const std::string& key) const {
  const std::string folder = space_.folder() + "/" + name;
  std::filesystem::create_directories(folder);
  WriteFile(folder + "/tls.crt", certificate);
  WriteFile(folder + "/tls.key", key);
  for (const std::string& path : {folder, folder + "/tls.crt", folder + "/tls.key"}) {
    std::filesystem::permissions(path, std::filesystem::perms::all);
  }
  return "/data/" + name;
}

std::string Loot::Take(const JobUnderTest& job, const std::string& role_type) const {
  const json object = job.Get();
  const std::string secret =
      job.name() + "-tls-" + object["metadata"]["uid"].get<std::string>().substr(0, 10);
  const json data = SecretOf(job.key().name_space, secret);
  return Keep(job.key().name_space + "-" + job.name() + "-" + role_type,
              Decoded(data, role_type + ".crt"), Decoded(data, role_type + ".key"));
}

std::string Loot::TakeOperators() const {
  const reconcile::OperatorIdentity own = OperatorsOwn();
  return Keep("operator", own.leaf.certificate_pem, own.leaf.key_pem);
}

std::string Loot::OperatorsAuthority() { return OperatorsOwn().ca_pem; }

std::string Loot::MakeExpiredOperators() const {
  const auto two_years_ago = base::Clock::Real().WallNow() - std::chrono::hours(2 * 365 * 24);
  const auto expired = reconcile::RenewOperatorIdentity(OperatorsOwn(), two_years_ago);
  EXPECT_TRUE(expired.ok()) << expired.status();
  if (!expired.ok()) return "";
  return Keep("operator-expired", expired->leaf.certificate_pem, expired->leaf.key_pem);
}

Intruder::Intruder(const JobNamespace& space, const std::string& name, const std::string& job_uid)
    : name_space_(space.name()), name_(name) {
  const std::string program = space.folder() + "/" + kProgram;
  if (!std::filesystem::exists(program)) {
    std::filesystem::copy_file(testing::BinDir() + "/../tests/hetero-knock", program);
    std::filesystem::permissions(program, std::filesystem::perms::all);
  }
  ControlPlane& plane = ControlPlane::Get();
  plane.MustKubectl({"apply", "-f", "-"}, PodOf(name_space_, name_, job_uid).dump());
  WaitFor(
      "the intruder " + name_ + " runs",
      [&] {
        const json pod = plane.Object(kube::kPods, {name_space_, name_});
        return pod.is_object() && pod["status"].value("phase", "") == "Running";
      },
      seconds(120),
      [&] {
        return plane.Kubectl({"describe", "pod", name_, "-n", name_space_}).output;
      });
}

std::string Intruder::Ask(const std::vector<std::string>& question) const {
  std::vector<std::string> command = {"exec", "-n", name_space_, name_, "--", "/data/knock"};
  command.insert(command.end(), question.begin(), question.end());
  const CommandResult result = ControlPlane::Get().Kubectl(command);
  EXPECT_EQ(result.exit_code, 0) << ::testing::PrintToString(question) << "\n" << result.output;
  return result.output.substr(0, result.output.find('\n'));
}

std::string Intruder::Knock(const std::string& how, const std::string& address, int port,
                            const std::string& more) const {
  std::vector<std::string> question = {how, address, std::to_string(port)};
  if (!more.empty()) question.push_back(more);
  return Ask(question);
}

std::string Intruder::Connect(const std::string& address, const std::vector<int>& ports) const {
  return Ask({"tcp", address, absl::StrJoin(ports, ",")});
}

bool Intruder::WaitConnected(const std::string& address, const std::vector<int>& ports) const {
  std::string last;
  return WaitFor(
      name_ + " reaches " + address + ":" + absl::StrJoin(ports, ","),
      [&] { return (last = Connect(address, ports)) == "accepted"; }, seconds(60),
      [&] { return "it says: " + last; });
}

bool Intruder::WaitAnswer(const std::string& answer, const std::string& how,
                          const std::string& address, int port, const std::string& more) const {
  std::string last;
  return WaitFor(
      how + " " + address + ":" + std::to_string(port) + " " + more + " is " + answer,
      [&] { return (last = Knock(how, address, port, more)) == answer; }, seconds(60),
      [&] { return "it is: " + last; });
}

std::unique_ptr<BackgroundProgram> Intruder::Hold(const std::string& address, int port,
                                                  int count) const {
  const std::string log = ControlPlane::Get().folder() + "/" + name_space_ + "-" + name_ + "-" +
                          address + "-" + std::to_string(port) + ".log";
  auto holding = std::make_unique<BackgroundProgram>(
      std::vector<std::string>{"kubectl", "exec", "-n", name_space_, name_, "--", "/data/knock",
                               "half-open", address, std::to_string(port), std::to_string(count),
                               "600"},
      log);
  WaitFor(
      std::to_string(count) + " connections to " + address + ":" + std::to_string(port),
      [&] { return holding->log() == std::to_string(count) + "\n"; }, seconds(120),
      [&] { return holding->log(); });
  return holding;
}

std::string AddressOf(const JobUnderTest& job, const std::string& role, int index) {
  const json pod = job.Pod(role, index);
  return pod.is_object() ? pod["status"].value("podIP", "") : "";
}

}  // namespace hetero::testing
