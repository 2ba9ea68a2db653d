#include <cctype>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/cluster.h"

namespace hetero::cli {
namespace {

// The server's own words: without "GET /apis/...: 404 NotFound: ", which names the call.
std::string ServerWords(const absl::Status& status) {
  std::string text(status.message());
  for (size_t at = text.find(": "); at != std::string::npos; at = text.find(": ", at + 2)) {
    const auto digit = [&](size_t i) {
      return at + i < text.size() && std::isdigit(static_cast<unsigned char>(text[at + i])) != 0;
    };
    if (!digit(2) || !digit(3) || !digit(4)) continue;
    const size_t words = text.find(": ", at + 5);
    return words == std::string::npos ? text.substr(at + 2) : text.substr(words + 2);
  }
  // "GET /apis/... at 10.0.0.1:6443: no connection" of the transport.
  const size_t server = text.find(" at ");
  return server == std::string::npos ? text : text.substr(server + 4);
}

std::string Where(const kube::ObjectKey& job) {
  return job.name_space.empty() ? "all namespaces" : "namespace " + job.name_space;
}

std::string WhatIsMissing(const std::string& words, const kube::ObjectKey& job) {
  if (words.find("namespaces \"") != std::string::npos) {
    return absl::StrCat("there is no namespace ", job.name_space, "; -n names another one");
  }
  // Of objects that are missing, the server says the name.
  if (job.name.empty() || words.find("\"" + job.name + "\"") == std::string::npos) {
    return absl::StrCat("the cluster knows no HeteroTrainingJobs (", words,
                        "); install the chart hetero-operator, or name another cluster with "
                        "--context");
  }
  return absl::StrCat("there is no heterotrainingjob ", job.name, " in namespace ", job.name_space,
                      "; kubectl hetero list -n ", job.name_space,
                      " lists those there are, -n names another namespace");
}

}  // namespace

absl::Status Explain(const absl::Status& status, const std::string& verb,
                     const kube::ObjectKey& job) {
  const std::string words = ServerWords(status);
  const std::string what =
      job.name.empty() ? absl::StrCat("cannot ", verb, " heterotrainingjobs in ", Where(job))
                       : absl::StrCat("cannot ", verb, " heterotrainingjob ", job.ToString());
  std::string text;
  if (absl::IsNotFound(status)) {
    text = WhatIsMissing(words, job);
  } else if (absl::IsPermissionDenied(status)) {
    text =
        absl::StrCat(what, ": ", words, "; ask for the right to ", verb, " heterotrainingjobs in ",
                     Where(job), " (the chart's roles view and edit hold it)");
  } else if (absl::IsUnauthenticated(status)) {
    text =
        absl::StrCat(what, ": ", words, "; see whether your kubeconfig's credentials have expired");
  } else if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    text = absl::StrCat(what, ": the API server gives no answer: ", words,
                        "; see whether kubectl cluster-info works, --kubeconfig and --context "
                        "choose another cluster");
  } else {
    text = absl::StrCat(what, ": ", words);
  }
  return absl::Status(status.code(), text);
}

}  // namespace hetero::cli
