#include "operator/kube/credentials.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/status_macros.h"

namespace hetero::kube {
namespace {

constexpr base::Duration kReadAgain = std::chrono::seconds(60);
constexpr base::Duration kBeforeExpiry = std::chrono::seconds(10);

// A token goes into a header as it is.
absl::StatusOr<std::string> CleanToken(std::string token) {
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r' || token.back() == ' ')) {
    token.pop_back();
  }
  if (std::any_of(token.begin(), token.end(), [](char c) { return c <= ' ' || c > '~'; })) {
    return absl::UnauthenticatedError("the token holds characters that no token has");
  }
  return token;
}

class Files : public CredentialSource {
 public:
  Files(base::Clock& clock, TextOrFile token, TextOrFile certificate, TextOrFile key)
      : clock_(clock),
        token_(std::move(token)),
        certificate_(std::move(certificate)),
        key_(std::move(key)) {}

  absl::StatusOr<Credential> Get(bool refresh) override {
    const base::MutexLock lock(mutex_);
    if (known_.has_value() && !refresh && clock_.Now() - read_at_ < kReadAgain) return *known_;
    absl::StatusOr<Credential> read = Read();
    if (!read.ok()) {
      if (!known_.has_value()) return read;
      log::Warning("credential could not be read again; the last one is used",
                   {{"reason", read.status().message()}});
    } else {
      known_ = *std::move(read);
    }
    read_at_ = clock_.Now();
    return *known_;
  }

 private:
  absl::StatusOr<Credential> Read() const {
    Credential credential;
    HETERO_ASSIGN_OR_RETURN(std::string token, Resolve(token_));
    HETERO_ASSIGN_OR_RETURN(credential.token, CleanToken(std::move(token)));
    HETERO_ASSIGN_OR_RETURN(credential.certificate_pem, Resolve(certificate_));
    HETERO_ASSIGN_OR_RETURN(credential.key_pem, Resolve(key_));
    return credential;
  }

  base::Clock& clock_;
  const TextOrFile token_, certificate_, key_;
  base::Mutex mutex_;
  std::optional<Credential> known_ ABSL_GUARDED_BY(mutex_);
  base::Instant read_at_ ABSL_GUARDED_BY(mutex_);
};

class Exec : public CredentialSource {
 public:
  Exec(base::Clock& clock, ExecPlugin plugin, std::string where)
      : clock_(clock), plugin_(std::move(plugin)), where_(std::move(where)) {}

  absl::StatusOr<Credential> Get(bool refresh) override {
    const base::MutexLock lock(mutex_);  // held while it runs: all others want its result too
    const bool valid = known_.has_value() && (!known_->expires.has_value() ||
                                              clock_.WallNow() + kBeforeExpiry < *known_->expires);
    if (valid && !refresh) return known_->credential;
    absl::StatusOr<ExecCredential> made = RunExecPlugin(plugin_);
    if (made.ok()) {
      absl::StatusOr<std::string> token = CleanToken(made->credential.token);
      if (token.ok()) {
        made->credential.token = *std::move(token);
      } else {
        made = token.status();
      }
    }
    if (!made.ok()) {
      return absl::Status(made.status().code(), where_ + ": exec plugin " + plugin_.command + ": " +
                                                    std::string(made.status().message()));
    }
    known_ = *std::move(made);
    return known_->credential;
  }

 private:
  base::Clock& clock_;
  const ExecPlugin plugin_;
  const std::string where_;
  base::Mutex mutex_;
  std::optional<ExecCredential> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in.is_open() || in.bad()) return absl::NotFoundError("file " + file + " cannot be read");
  return text;
}

absl::StatusOr<std::string> Resolve(const TextOrFile& source) {
  if (!source.text.empty() || source.file.empty()) return source.text;
  HETERO_ASSIGN_OR_RETURN(std::string text, ReadFile(source.file));
  if (text.empty()) return absl::FailedPreconditionError("file " + source.file + " is empty");
  return text;
}

std::shared_ptr<CredentialSource> FileCredentials(base::Clock& clock, TextOrFile token,
                                                  TextOrFile certificate, TextOrFile key) {
  return std::make_shared<Files>(clock, std::move(token), std::move(certificate), std::move(key));
}

std::shared_ptr<CredentialSource> ExecCredentials(base::Clock& clock, ExecPlugin plugin,
                                                  std::string where) {
  return std::make_shared<Exec>(clock, std::move(plugin), std::move(where));
}

}  // namespace hetero::kube
