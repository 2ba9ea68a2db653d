#include "runtime/storage/http_store.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "runtime/storage/http/url.h"
#include "runtime/storage/object_name.h"
#include "runtime/storage/range_reply.h"

namespace hetero::storage {
namespace {

// From a name to where its bytes are, as hubs of datasets do it.
constexpr int kMostRedirects = 5;

// Texts as they come, with their quotes, and W/ where an ETag is a weak one.
std::string VersionOf(const HttpResponse& response) {
  const std::string& etag = response.Header("etag");
  return etag.empty() ? response.Header("last-modified") : etag;
}

Judgement Judge(const HttpResponse& response) {
  Judgement judgement = JudgeStatus(response);
  for (const char* header : {"x-request-id", "x-amz-request-id", "cf-ray"}) {
    const std::string& id = response.Header(header);
    if (judgement.reason.empty() || id.empty()) continue;
    absl::StrAppend(&judgement.reason, " (", header, " ", base::ToUtf8(id, 100), ")");
    break;
  }
  return judgement;
}

class HttpStore : public Store {
 public:
  HttpStore(std::string uri, const StoreOptions& options, std::unique_ptr<HttpClient> http)
      : uri_(std::move(uri)),
        http_(std::move(http)),
        limit_(options.concurrency),
        meter_(options.prices),
        client_(*http_, *options.clock, limit_, options.retries, options.deadlines, &meter_) {}

  const std::string& uri() const override { return uri_; }
  bool is_remote() const override { return true; }

  absl::StatusOr<std::vector<Object>> List(std::string_view) const override {
    return absl::UnimplementedError(
        absl::StrCat("cannot list ", uri_,
                     ": a web server says nothing of what there is; name the "
                     "objects one by one, or in a manifest or index that is read first"));
  }

  absl::StatusOr<Object> Head(std::string_view name) const override {
    HETERO_RETURN_IF_ERROR(CheckName(uri_, name));
    const std::string url = UrlOf(name);
    const std::string what = absl::StrCat("cannot find ", url);
    HETERO_ASSIGN_OR_RETURN(
        const PersistentClient::Answer answer,
        client_.Send({.what = what,
                      .prepare =
                          [&] {
                            return HttpRequest{
                                .method = "HEAD", .url = url, .most_redirects = kMostRedirects};
                          },
                      .judge = Judge}));
    Object object{std::string(name), 0, VersionOf(answer.response)};
    if (!absl::SimpleAtoi(answer.response.Header("content-length"), &object.size) ||
        object.size < 0) {
      return absl::UnimplementedError(
          absl::StrCat(what, ": the server does not say how large it is"));
    }
    return object;
  }

  absl::Status Read(const Object& object, int64_t offset, absl::Span<uint8_t> out) const override {
    HETERO_RETURN_IF_ERROR(CheckName(uri_, object.name));
    HETERO_RETURN_IF_ERROR(CheckRange(uri_, object, offset, out.size()));
    if (out.empty()) return absl::OkStatus();
    const auto length = static_cast<int64_t>(out.size());
    HttpRequest request{.url = UrlOf(object.name),
                        .headers = {{"range", RangeHeader(offset, length)}},
                        .into = out,
                        .most_redirects = kMostRedirects};
    // A weak one never matches, and says nothing of bytes; it is compared all the same.
    if (absl::StartsWith(object.version, "\"")) {
      request.headers.emplace_back("if-match", object.version);
    }
    return client_
        .Send({.what = absl::StrCat("cannot read ", request.url, ", ", RangeText(offset, length)),
               .prepare = [&] { return request; },
               .judge =
                   [&](const HttpResponse& response) {
                     return JudgeRange(response, object, offset, length, Judge,
                                       VersionOf(response));
                   }})
        .status();
  }

  absl::StatusOr<Object> ReadAll(std::string_view name, int64_t limit,
                                 std::vector<uint8_t>* bytes) const override {
    HETERO_RETURN_IF_ERROR(CheckName(uri_, name));
    const HttpRequest request{
        .url = UrlOf(name), .most_body_bytes = limit, .most_redirects = kMostRedirects};
    HETERO_ASSIGN_OR_RETURN(const PersistentClient::Answer answer,
                            client_.Send({.what = absl::StrCat("cannot read ", request.url),
                                          .prepare = [&] { return request; },
                                          .judge =
                                              [limit](const HttpResponse& response) {
                                                return JudgeWhole(response, limit, Judge);
                                              }}));
    const std::string& body = answer.response.body;
    bytes->assign(body.begin(), body.end());
    return Object{std::string(name), static_cast<int64_t>(body.size()), VersionOf(answer.response)};
  }

 private:
  std::string UrlOf(std::string_view name) const {
    return absl::StrCat(uri_, "/", EscapeUrl(name, /*keep_slashes=*/true));
  }

  const std::string uri_;
  const std::unique_ptr<HttpClient> http_;
  mutable ConcurrencyLimit limit_;
  const RequestMeter meter_;
  mutable PersistentClient client_;  // thread-safe
};

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenHttpStore(const std::string& uri,
                                                     const StoreOptions& options,
                                                     std::unique_ptr<HttpClient> http) {
  const absl::StatusOr<Url> url = ParseUrl(uri);
  // Not the text itself: it may hold a password.
  HETERO_RETURN_IF_ERROR(url.status());
  if (url->scheme == "http" && !IsLoopback(url->host)) {
    return absl::InvalidArgumentError(absl::StrCat(
        url->origin(), url->path,
        ": bytes that come by http:// may be anybody's; write https://, or http:// of this "
        "machine's own loopback address"));
  }
  return std::make_unique<HttpStore>(url->origin() + url->path, options, std::move(http));
}

}  // namespace hetero::storage
