#include "runtime/storage/http/curl_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/storage/http/url.h"

namespace hetero::storage {
namespace {

constexpr size_t kMostIdleSessions = 256;
constexpr size_t kMostErrorBytes = 64 << 10;
constexpr size_t kMostHeaderBytes = 64 << 10;

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, FreeList>;

void StartLibrary() {
  static const bool once = [] {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    // A TLS connection that the server has closed must not end the process when it is written to.
    struct sigaction action = {};
    if (sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) {
      std::signal(SIGPIPE, SIG_IGN);
    }
    return true;
  }();
  static_cast<void>(once);
}

// What libcurl says, without the address of a proxy: it repeats one that it does not understand
// with the password in it.
std::string WithoutProxy(absl::string_view text) {
  const size_t quote = text.find('\'');
  if (quote == absl::string_view::npos || !absl::StrContains(text.substr(0, quote), "proxy")) {
    return std::string(text);
  }
  return absl::StrCat(text.substr(0, quote), "https_proxy or http_proxy; correct the variable");
}

absl::StatusCode CodeOf(CURLcode code) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return absl::StatusCode::kDeadlineExceeded;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
      return absl::StatusCode::kUnauthenticated;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_TOO_MANY_REDIRECTS:
      return absl::StatusCode::kInvalidArgument;
    case CURLE_OUT_OF_MEMORY:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

long Milliseconds(base::Duration duration) {
  const auto count = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return static_cast<long>(std::clamp<int64_t>(count, 1, int64_t{1} << 30));
}

}  // namespace

// A connection, or the place for one, and the exchange that is on it.
class CurlClient::Session {
 public:
  Session() : easy_(curl_easy_init()), multi_(curl_multi_init()) {}
  ~Session() {
    curl_easy_cleanup(easy_);
    curl_multi_cleanup(multi_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request, CurlClient& client) {
    if (easy_ == nullptr || multi_ == nullptr) {
      return absl::ResourceExhaustedError("libcurl has no memory for a connection");
    }
    const size_t end = request.url.find_first_of("?#");
    HETERO_ASSIGN_OR_RETURN(const Url url, ParseUrl(std::string_view(request.url).substr(0, end)));
    for (const auto& [name, value] : request.headers) {
      if ((name + value).find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) {
        return absl::InvalidArgumentError(
            absl::StrCat("the header ", name, " for ", url.authority, " has a line end in it"));
      }
    }
    authorities_ = nullptr;
    if (url.scheme == "https") {
      authorities_ = &client.TrustedAuthorities();
      HETERO_RETURN_IF_ERROR(authorities_->status());
    }
    request_ = &request;
    response_ = HttpResponse();
    header_bytes_ = 0;
    headers_ended_ = false;
    error_[0] = '\0';
    const List headers = Prepare(request, client.options_, url);
    curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers.get());
    curl_multi_add_handle(multi_, easy_);
    const std::optional<CURLcode> code = Run(request.deadlines.idle);
    curl_multi_remove_handle(multi_, easy_);
    return Outcome(code, url);
  }

 private:
  List Prepare(const HttpRequest& request, const Options& options, const Url& url);
  // Nothing: the exchange was silent for `idle`.
  std::optional<CURLcode> Run(base::Duration idle);
  absl::StatusOr<HttpResponse> Outcome(std::optional<CURLcode> code, const Url& url);

  static size_t OnHeader(char* data, size_t, size_t size, void* self) {
    return static_cast<Session*>(self)->TakeHeader({data, size}) ? size : 0;
  }
  static size_t OnBody(char* data, size_t, size_t size, void* self) {
    return static_cast<Session*>(self)->TakeBody({data, size}) ? size : 0;
  }
  static CURLcode OnTls(CURL*, void* ssl_context, void* self) {
    static_cast<Session*>(self)->authorities_->TrustedBy(ssl_context);
    return CURLE_OK;
  }
  bool TakeHeader(std::string_view line);
  bool TakeBody(std::string_view bytes);
  // Bytes so far, in both directions.
  int64_t Progress() const;

  CURL* const easy_;
  CURLM* const multi_;
  const HttpRequest* request_ = nullptr;
  const Authorities* authorities_ = nullptr;  // null: without TLS
  HttpResponse response_;
  size_t header_bytes_ = 0;
  bool headers_ended_ = false;  // by an empty line: libcurl takes the end of a connection for that
  char error_[CURL_ERROR_SIZE] = "";
};

List CurlClient::Session::Prepare(const HttpRequest& request, const Options& options,
                                  const Url& url) {
  curl_easy_reset(easy_);  // keeps its connections
  const auto set = [this](CURLoption option, auto value) {
    curl_easy_setopt(easy_, option, value);
  };
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(error_));
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_BUFFERSIZE, 128L << 10);
  if (!options.user_agent.empty()) set(CURLOPT_USERAGENT, options.user_agent.c_str());
  if (authorities_ != nullptr) {
    set(CURLOPT_CAINFO, static_cast<char*>(nullptr));  // libcurl would read them each time
    set(CURLOPT_CAPATH, static_cast<char*>(nullptr));
    set(CURLOPT_SSL_CTX_FUNCTION, &OnTls);
    set(CURLOPT_SSL_CTX_DATA, this);
  }
  if (!request.use_proxy || IsLoopback(url.host)) set(CURLOPT_PROXY, "");
  if (request.most_redirects > 0) {
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, static_cast<long>(request.most_redirects));
    // Never from https to where everybody reads along.
    set(CURLOPT_REDIR_PROTOCOLS_STR, url.scheme == "https" ? "https" : "http,https");
  }
  set(CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(request.deadlines.connect));
  set(CURLOPT_TIMEOUT_MS, Milliseconds(request.deadlines.total));
  set(CURLOPT_HEADERFUNCTION, &OnHeader);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &OnBody);
  set(CURLOPT_WRITEDATA, this);

  curl_slist* headers = nullptr;
  const auto add = [&headers](const std::string& line) {
    headers = curl_slist_append(headers, line.c_str());
  };
  if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT" || request.method == "POST") {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDS, request.body.data() == nullptr ? "" : request.body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    if (request.method != "POST") set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    // What libcurl would add to a form.
    add("Expect:");
    if (std::none_of(request.headers.begin(), request.headers.end(), [](const auto& header) {
          return absl::EqualsIgnoreCase(header.first, "content-type");
        })) {
      add("Content-Type:");
    }
  } else if (request.method != "GET") {
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  for (const auto& [name, value] : request.headers) {
    // A header without a value is written with a semicolon.
    add(value.empty() ? name + ";" : absl::StrCat(name, ": ", value));
  }
  return List(headers);
}

std::optional<CURLcode> CurlClient::Session::Run(base::Duration idle) {
  base::Clock& clock = base::Clock::Real();
  int64_t progress = -1;
  base::Instant last = clock.Now();
  int running = 1;
  while (curl_multi_perform(multi_, &running) == CURLM_OK && running > 0) {
    const base::Instant now = clock.Now();
    if (const int64_t bytes = Progress(); bytes != progress) {
      progress = bytes;
      last = now;
    }
    const base::Duration left = last + idle - now;
    if (left <= base::Duration::zero()) return std::nullopt;
    const long wait = std::min(Milliseconds(left), 1000L);
    if (curl_multi_poll(multi_, nullptr, 0, static_cast<int>(wait), nullptr) != CURLM_OK) break;
  }
  int others = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &others)) {
    if (message->msg == CURLMSG_DONE) return message->data.result;
  }
  return CURLE_OUT_OF_MEMORY;
}

int64_t CurlClient::Session::Progress() const {
  curl_off_t up = 0, down = 0, connected = 0;
  curl_easy_getinfo(easy_, CURLINFO_SIZE_UPLOAD_T, &up);
  curl_easy_getinfo(easy_, CURLINFO_SIZE_DOWNLOAD_T, &down);
  curl_easy_getinfo(easy_, CURLINFO_APPCONNECT_TIME_T, &connected);
  return up + down + connected + static_cast<int64_t>(header_bytes_);
}

bool CurlClient::Session::TakeHeader(std::string_view line) {
  header_bytes_ += line.size();
  if (header_bytes_ > kMostHeaderBytes) return false;
  const absl::string_view text =
      absl::StripTrailingAsciiWhitespace(absl::string_view(line.data(), line.size()));
  if (text.empty()) headers_ended_ = true;
  if (absl::StartsWith(text, "HTTP/")) {
    headers_ended_ = false;  // also after a redirect, a proxy's reply or 100
    response_.headers.clear();
    response_.body.clear();
    return true;
  }
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos) return true;
  response_.headers[absl::AsciiStrToLower(text.substr(0, colon))] =
      std::string(absl::StripLeadingAsciiWhitespace(text.substr(colon + 1)));
  return true;
}

bool CurlClient::Session::TakeBody(std::string_view bytes) {
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  const bool good = status >= 200 && status < 300;
  if (!good) {
    const size_t room = kMostErrorBytes - response_.body.size();
    response_.body.append(bytes.substr(0, room));
    return true;
  }
  if (request_->into.empty()) {
    if (static_cast<int64_t>(response_.body.size() + bytes.size()) > request_->most_body_bytes) {
      response_.overflow = true;
      return false;
    }
    response_.body.append(bytes);
    return true;
  }
  if (response_.received + bytes.size() > request_->into.size()) {
    response_.overflow = true;
    return false;
  }
  std::memcpy(request_->into.data() + response_.received, bytes.data(), bytes.size());
  response_.received += static_cast<int64_t>(bytes.size());
  return true;
}

absl::StatusOr<HttpResponse> CurlClient::Session::Outcome(std::optional<CURLcode> code,
                                                          const Url& url) {
  if (code == CURLE_OK && !headers_ended_) {
    return absl::UnavailableError(absl::StrCat(url.authority, ": the reply ended in its headers"));
  }
  if (code == CURLE_OK || response_.overflow) {
    long status = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    response_.status = static_cast<int>(status);
    return std::move(response_);
  }
  if (!code.has_value()) {
    return absl::DeadlineExceededError(absl::StrCat(
        url.authority, " said nothing for ", base::ToSeconds(request_->deadlines.idle), " s"));
  }
  if (header_bytes_ > kMostHeaderBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(url.authority, " sent more than ", kMostHeaderBytes, " bytes of headers"));
  }
  const char* text = error_[0] != '\0' ? error_ : curl_easy_strerror(*code);
  return absl::Status(CodeOf(*code), absl::StrCat(url.authority, ": ", WithoutProxy(text)));
}

CurlClient::CurlClient() : CurlClient(Options()) {}

CurlClient::CurlClient(Options options) : options_(std::move(options)) { StartLibrary(); }

CurlClient::~CurlClient() = default;

absl::StatusOr<HttpResponse> CurlClient::Send(const HttpRequest& request) {
  std::unique_ptr<Session> session = Take();
  absl::StatusOr<HttpResponse> response = session->Send(request, *this);
  Return(std::move(session));
  return response;
}

const Authorities& CurlClient::TrustedAuthorities() {
  std::call_once(authorities_read_, [this] {
    std::string file = options_.ca_bundle;
    if (file.empty()) {
      const curl_version_info_data* library = curl_version_info(CURLVERSION_NOW);
      file = library->cainfo == nullptr ? "/etc/ssl/certs/ca-certificates.crt" : library->cainfo;
    }
    authorities_ = std::make_unique<const Authorities>(file);
  });
  return *authorities_;
}

std::unique_ptr<CurlClient::Session> CurlClient::Take() {
  {
    const base::MutexLock lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Session> session = std::move(idle_.back());
      idle_.pop_back();
      return session;
    }
  }
  return std::make_unique<Session>();
}

void CurlClient::Return(std::unique_ptr<Session> session) {
  const base::MutexLock lock(mutex_);
  if (idle_.size() < kMostIdleSessions) idle_.push_back(std::move(session));
}

}  // namespace hetero::storage
