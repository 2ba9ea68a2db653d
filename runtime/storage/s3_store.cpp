#include "runtime/storage/s3_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/storage/object_name.h"
#include "runtime/storage/range_reply.h"
#include "runtime/storage/s3_connection.h"
#include "runtime/storage/s3_writer.h"

namespace hetero::storage {
namespace {

// A page of a thousand keys of 1,024 bytes, each three characters.
constexpr int64_t kMostPageBytes = 8 << 20;

class S3Store : public WritableStore {
 public:
  S3Store(S3Address address, const StoreOptions& options, std::unique_ptr<HttpClient> http,
          std::shared_ptr<RenewedCredentials> credentials)
      : list_page_(std::clamp(options.list_page, 1, 1000)),
        part_bytes_(options.part_bytes),
        connection_(std::move(address), options, std::move(http), std::move(credentials)) {}

  const std::string& uri() const override { return connection_.address().uri; }
  bool is_remote() const override { return true; }

  absl::StatusOr<std::vector<Object>> List(std::string_view prefix) const override;
  absl::StatusOr<Object> Head(std::string_view name) const override {
    HETERO_RETURN_IF_ERROR(CheckKey(name));
    return HeadS3(connection_, name);
  }
  absl::Status Read(const Object& object, int64_t offset, absl::Span<uint8_t> out) const override;
  absl::StatusOr<Object> ReadAll(std::string_view name, int64_t limit,
                                 std::vector<uint8_t>* bytes) const override;

  absl::StatusOr<std::unique_ptr<ObjectWriter>> Create(std::string_view name) override {
    HETERO_RETURN_IF_ERROR(CheckKey(name));
    return CreateS3Writer(connection_, std::string(name), part_bytes_);
  }
  absl::StatusOr<Object> WriteIfAbsent(std::string_view name, std::string_view bytes) override {
    HETERO_RETURN_IF_ERROR(CheckKey(name));
    return PutS3If(connection_, std::string(name), nullptr, bytes);
  }
  absl::StatusOr<Object> WriteIfMatch(const Object& old, std::string_view bytes) override {
    HETERO_RETURN_IF_ERROR(CheckKey(old.name));
    return PutS3If(connection_, old.name, &old, bytes);
  }
  absl::Status Delete(std::string_view name) override {
    HETERO_RETURN_IF_ERROR(CheckKey(name));
    return DeleteS3(connection_, name);
  }

 private:
  absl::Status CheckKey(std::string_view name) const {
    const std::string key = connection_.address().Key(name);
    if (!name.empty() && key.size() <= 1024) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        connection_.UriOf(name), ": a key has 1 to 1024 bytes, and this has ", key.size()));
  }
  // Adds the page's objects.
  absl::Status Take(ListPage page, const std::string& begin, std::vector<Object>* objects) const;

  const int list_page_;
  const int64_t part_bytes_;
  mutable S3Connection connection_;  // thread-safe
};

absl::StatusOr<std::vector<Object>> S3Store::List(std::string_view prefix) const {
  const std::string begin = connection_.address().Key(prefix);
  const std::string what = absl::StrCat("cannot list ", connection_.UriOf(prefix));
  std::vector<Object> objects;
  std::string token;
  std::set<std::string> tokens;  // a server may go in circles
  do {
    S3Request request{.query = {{"list-type", "2"},
                                {"prefix", begin},
                                {"max-keys", absl::StrCat(list_page_)},
                                {"encoding-type", "url"}},
                      .most_body_bytes = kMostPageBytes};
    if (!token.empty()) request.query.emplace_back("continuation-token", token);
    // A page may be damaged on its way; one that stays so is no listing.
    constexpr int kMostDamaged = 3;
    int damaged = 0;
    ListPage page;
    const auto judge = [&](const HttpResponse& response) -> Judgement {
      Judgement judgement = JudgeS3(response);
      if (judgement.verdict != Judgement::Verdict::kDone) return judgement;
      absl::StatusOr<ListPage> read = absl::DataLossError("a page is too long");
      if (!response.overflow) read = ReadListPage(response.body);
      if (!read.ok()) {
        return {++damaged < kMostDamaged ? Judgement::Verdict::kAgain : Judgement::Verdict::kFailed,
                read.status().code(), std::string(read.status().message())};
      }
      page = *std::move(read);
      return judgement;
    };
    HETERO_RETURN_IF_ERROR(connection_.Send(what, request, judge).status());
    if (!page.next.empty() && !tokens.insert(page.next).second) {
      return absl::DataLossError(absl::StrCat(what, ": the server gives the same page again"));
    }
    token = page.next;
    HETERO_RETURN_IF_ERROR(Take(std::move(page), begin, &objects));
  } while (!token.empty());
  const auto before = [](const Object& a, const Object& b) { return a.name < b.name; };
  // Not every server has S3's order.
  if (!std::is_sorted(objects.begin(), objects.end(), before)) {
    std::sort(objects.begin(), objects.end(), before);
  }
  return objects;
}

absl::Status S3Store::Take(ListPage page, const std::string& begin,
                           std::vector<Object>* objects) const {
  for (ListedKey& listed : page.keys) {
    if (!absl::StartsWith(listed.key, begin)) {
      return absl::DataLossError(
          absl::StrCat("cannot list ", uri(), ": the server lists what was not asked for"));
    }
    if (absl::EndsWith(listed.key, "/")) continue;
    if (objects->size() == kMostListedObjects) {
      return absl::OutOfRangeError(absl::StrCat("cannot list ", uri(), ": more than ",
                                                kMostListedObjects,
                                                " objects; put them into shards"));
    }
    objects->push_back({listed.key.substr(connection_.address().prefix.size()), listed.size,
                        std::move(listed.etag)});
  }
  return absl::OkStatus();
}

absl::Status S3Store::Read(const Object& object, int64_t offset, absl::Span<uint8_t> out) const {
  HETERO_RETURN_IF_ERROR(CheckKey(object.name));
  HETERO_RETURN_IF_ERROR(CheckRange(uri(), object, offset, out.size()));
  if (out.empty()) return absl::OkStatus();
  const auto length = static_cast<int64_t>(out.size());
  S3Request request{.key = connection_.address().Key(object.name),
                    .headers = {{"range", RangeHeader(offset, length)}},
                    .into = out};
  if (!object.version.empty()) {
    request.headers.emplace_back("if-match", absl::StrCat("\"", object.version, "\""));
  }
  return connection_
      .Send(absl::StrCat("cannot read ", connection_.UriOf(object.name), ", ",
                         RangeText(offset, length)),
            request,
            [&](const HttpResponse& response) {
              return JudgeRange(response, object, offset, length, JudgeS3,
                                WithoutQuotes(response.Header("etag")));
            })
      .status();
}

absl::StatusOr<Object> S3Store::ReadAll(std::string_view name, int64_t limit,
                                        std::vector<uint8_t>* bytes) const {
  HETERO_RETURN_IF_ERROR(CheckKey(name));
  HETERO_ASSIGN_OR_RETURN(
      const PersistentClient::Answer answer,
      connection_.Send(
          absl::StrCat("cannot read ", connection_.UriOf(name)),
          {.key = connection_.address().Key(name), .most_body_bytes = limit},
          [limit](const HttpResponse& response) { return JudgeWhole(response, limit, JudgeS3); }));
  const std::string& body = answer.response.body;
  bytes->assign(body.begin(), body.end());
  return Object{std::string(name), static_cast<int64_t>(body.size()),
                WithoutQuotes(answer.response.Header("etag"))};
}

}  // namespace

absl::StatusOr<std::unique_ptr<WritableStore>> OpenS3Store(
    const std::string& uri, const StoreOptions& options, std::unique_ptr<HttpClient> http,
    std::shared_ptr<RenewedCredentials> credentials) {
  HETERO_ASSIGN_OR_RETURN(S3Address address, FindS3(uri, options));
  return std::make_unique<S3Store>(std::move(address), options, std::move(http),
                                   std::move(credentials));
}

}  // namespace hetero::storage
