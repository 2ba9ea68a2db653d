#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "operator/kube/cluster_access.h"
#include "operator/kube/credentials.h"

namespace hetero::kube {
namespace {

namespace fs = std::filesystem;

// A named entry of a kubeconfig, and where it stands, for messages.
struct Entry {
  YAML::Node node;
  std::string where;
  fs::path folder;
};

struct ConfigFile {
  std::string path;
  YAML::Node root;
};
using ConfigFiles = std::vector<ConfigFile>;

// "a, b", for messages.
std::string Names(const ConfigFiles& files) {
  return absl::StrJoin(files, ", ",
                       [](std::string* out, const ConfigFile& file) { *out += file.path; });
}

// Empty when it is missing or null. yaml-cpp's exceptions are caught in KubeconfigAccess.
std::string TextAt(const YAML::Node& node, const char* key) {
  if (!node.IsMap()) return "";
  const YAML::Node value = node[key];
  return value.IsDefined() && value.IsScalar() ? value.Scalar() : "";
}

YAML::Node MapAt(const YAML::Node& node, const char* key) {
  return node.IsMap() && node[key].IsDefined() ? node[key] : YAML::Node();
}

// The first entry called `name` in the lists `list`; its content stands under `key`.
absl::StatusOr<Entry> Find(const ConfigFiles& files, const char* list, const char* key,
                           const std::string& name) {
  const std::string what = std::string(": ") + key + " \"" + name + "\"";
  for (const ConfigFile& file : files) {
    const YAML::Node entries = MapAt(file.root, list);
    if (!entries.IsSequence()) continue;
    for (const YAML::Node& entry : entries) {
      if (TextAt(entry, "name") != name) continue;
      return Entry{MapAt(entry, key), file.path + what, fs::path(file.path).parent_path()};
    }
  }
  return absl::NotFoundError(Names(files) + what + " is not in " + list);
}

std::string CurrentContext(const ConfigFiles& files) {
  for (const ConfigFile& file : files) {
    std::string name = TextAt(file.root, "current-context");
    if (!name.empty()) return name;
  }
  return "";
}

// Relative files are meant from the kubeconfig's folder.
std::string FileAt(const Entry& entry, const char* key) {
  const std::string file = TextAt(entry.node, key);
  return file.empty() ? "" : (entry.folder / file).string();
}

absl::StatusOr<TextOrFile> DataOrFile(const Entry& entry, const std::string& key) {
  const std::string data = TextAt(entry.node, (key + "-data").c_str());
  if (data.empty()) return TextOrFile{.file = FileAt(entry, key.c_str())};
  TextOrFile result;
  if (!absl::Base64Unescape(data, &result.text)) {
    return absl::InvalidArgumentError(entry.where + ": " + key + "-data is no base64");
  }
  return result;
}

absl::StatusOr<ExecPlugin> ReadExec(const Entry& user, const YAML::Node& exec,
                                    const ClusterAccess& access) {
  ExecPlugin plugin;
  plugin.command = TextAt(exec, "command");
  plugin.api_version = TextAt(exec, "apiVersion");
  plugin.install_hint = TextAt(exec, "installHint");
  if (plugin.command.empty()) {
    return absl::InvalidArgumentError(user.where + ": exec.command is empty");
  }
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return absl::InvalidArgumentError(user.where + ": exec.apiVersion \"" + plugin.api_version +
                                      "\" is not client.authentication.k8s.io/v1 or v1beta1");
  }
  if (plugin.command.find('/') != std::string::npos) {
    plugin.command = (user.folder / plugin.command).string();
  }
  for (const YAML::Node& argument : MapAt(exec, "args")) plugin.args.push_back(argument.Scalar());
  for (const YAML::Node& variable : MapAt(exec, "env")) {
    plugin.env.emplace_back(TextAt(variable, "name"), TextAt(variable, "value"));
  }
  if (TextAt(exec, "provideClusterInfo") == "true") {
    plugin.cluster = {{"server", access.server}};
    if (!access.ca_pem.empty()) {
      plugin.cluster["certificate-authority-data"] = absl::Base64Escape(access.ca_pem);
    }
    if (!access.tls_server_name.empty()) {
      plugin.cluster["tls-server-name"] = access.tls_server_name;
    }
    if (access.insecure_skip_tls_verify) plugin.cluster["insecure-skip-tls-verify"] = true;
  }
  return plugin;
}

absl::Status ReadCluster(const Entry& cluster, ClusterAccess& access) {
  access.server = TextAt(cluster.node, "server");
  if (access.server.empty()) {
    return absl::InvalidArgumentError(cluster.where + ": server is missing");
  }
  access.tls_server_name = TextAt(cluster.node, "tls-server-name");
  access.insecure_skip_tls_verify = TextAt(cluster.node, "insecure-skip-tls-verify") == "true";
  HETERO_ASSIGN_OR_RETURN(const TextOrFile ca, DataOrFile(cluster, "certificate-authority"));
  absl::StatusOr<std::string> pem = Resolve(ca);
  if (!pem.ok()) {
    return absl::Status(pem.status().code(), cluster.where + ": certificate-authority: " +
                                                 std::string(pem.status().message()));
  }
  access.ca_pem = *std::move(pem);
  return absl::OkStatus();
}

absl::Status ReadUser(base::Clock& clock, const Entry& user, ClusterAccess& access) {
  const YAML::Node exec = MapAt(user.node, "exec");
  if (exec.IsMap()) {
    HETERO_ASSIGN_OR_RETURN(ExecPlugin plugin, ReadExec(user, exec, access));
    access.credentials = ExecCredentials(clock, std::move(plugin), user.where);
    return absl::OkStatus();
  }
  HETERO_ASSIGN_OR_RETURN(const TextOrFile certificate, DataOrFile(user, "client-certificate"));
  HETERO_ASSIGN_OR_RETURN(const TextOrFile key, DataOrFile(user, "client-key"));
  if (certificate.empty() != key.empty()) {
    return absl::InvalidArgumentError(user.where +
                                      ": client-certificate and client-key go together");
  }
  TextOrFile token{.file = FileAt(user, "tokenFile")};
  // As client-go: the file is the fresher one.
  if (token.empty()) token.text = TextAt(user.node, "token");
  if (token.empty() && certificate.empty() && user.node.IsMap() && user.node.size() > 0) {
    return absl::UnimplementedError(user.where +
                                    ": none of token, tokenFile, client-certificate, exec");
  }
  access.credentials = FileCredentials(clock, token, certificate, key);
  const absl::Status usable = access.credentials->Get(false).status();
  if (usable.ok()) return usable;
  return absl::Status(usable.code(), user.where + ": " + std::string(usable.message()));
}

absl::StatusOr<ClusterAccess> Read(base::Clock& clock, const ConfigFiles& files,
                                   const std::string& context_name) {
  const std::string name = context_name.empty() ? CurrentContext(files) : context_name;
  if (name.empty()) {
    return absl::InvalidArgumentError(Names(files) +
                                      ": current-context is not set; name a context");
  }
  HETERO_ASSIGN_OR_RETURN(const Entry context, Find(files, "contexts", "context", name));
  HETERO_ASSIGN_OR_RETURN(const Entry cluster,
                          Find(files, "clusters", "cluster", TextAt(context.node, "cluster")));
  ClusterAccess access;
  HETERO_RETURN_IF_ERROR(ReadCluster(cluster, access));
  const std::string name_space = TextAt(context.node, "namespace");
  if (!name_space.empty()) access.name_space = name_space;
  const std::string user_name = TextAt(context.node, "user");
  if (user_name.empty()) {
    access.credentials = FileCredentials(clock, {}, {}, {});
    return access;
  }
  HETERO_ASSIGN_OR_RETURN(const Entry user, Find(files, "users", "user", user_name));
  HETERO_RETURN_IF_ERROR(ReadUser(clock, user, access));
  return access;
}

}  // namespace

absl::StatusOr<ClusterAccess> KubeconfigAccess(base::Clock& clock,
                                               const std::vector<std::string>& files,
                                               const std::string& context) {
  ConfigFiles read;
  std::string at;  // what an exception of yaml-cpp's is about
  try {
    for (const std::string& file : files) {
      at = file;
      HETERO_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
      read.push_back({.path = file, .root = YAML::Load(text)});
    }
    at = Names(read);
    return Read(clock, read, context);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(at + ": " + error.what());
  }
}

}  // namespace hetero::kube
