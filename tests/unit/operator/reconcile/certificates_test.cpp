#include "operator/reconcile/certificates.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>

#include "base/tls.h"

namespace hetero::reconcile {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kUid[] = "0b8c2c1e-7f0f-4f3e-9d8f-3f1c2f3a4b5c";
constexpr char kOtherUid[] = "11111111-7f0f-4f3e-9d8f-3f1c2f3a4b5c";

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

base::WallTime Now() { return base::Clock::Real().WallNow(); }

JobTrust Issue(const std::string& uid = kUid) {
  absl::StatusOr<JobTrust> trust = IssueJobTrust(uid, Now());
  EXPECT_TRUE(trust.ok()) << trust.status();
  return *std::move(trust);
}

Certificate Parse(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  Certificate parsed(PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr), X509_free);
  EXPECT_NE(parsed, nullptr);
  return parsed;
}

// X509_V_OK, or why `leaf` is not good for `purpose` at `when`.
int Verify(const std::string& ca_pem, const std::string& leaf_pem, int purpose,
           base::WallTime when) {
  const Certificate ca = Parse(ca_pem), leaf = Parse(leaf_pem);
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(),
                                                                      X509_STORE_free);
  X509_STORE_add_cert(store.get(), ca.get());
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(
      X509_STORE_CTX_new(), X509_STORE_CTX_free);
  X509_STORE_CTX_init(context.get(), store.get(), leaf.get(), nullptr);
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_X509_STRICT);
  X509_VERIFY_PARAM_set_time(parameters, std::chrono::system_clock::to_time_t(when));
  X509_verify_cert(context.get());
  return X509_STORE_CTX_get_error(context.get());
}

// Output of the `openssl` program over files that are gone afterwards.
class OpenSslProgram {
 public:
  OpenSslProgram()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("certificates_test_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~OpenSslProgram() { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  static std::string Run(const std::string& arguments) {
    FILE* pipe = popen(("openssl " + arguments + " 2>&1").c_str(), "r");
    std::string output;
    char buffer[512];
    while (size_t read = fread(buffer, 1, sizeof(buffer), pipe)) output.append(buffer, read);
    pclose(pipe);
    return output;
  }

 private:
  std::filesystem::path folder_;
};

TEST(CertificatesTest, EveryLeafIsGoodForBothSidesOfAConnection) {
  const JobTrust trust = Issue();
  for (const children::Leaf* leaf : {&trust.head, &trust.cpu_worker, &trust.gpu_worker}) {
    for (const int purpose : {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT}) {
      EXPECT_EQ(Verify(trust.ca_pem, leaf->certificate_pem, purpose, Now()), X509_V_OK);
    }
  }
}

// The authority's key is gone, so a job that runs for longer than its leaves could never get
// others.
TEST(CertificatesTest, AJobThatRunsForLongerThanAYearKeepsItsTrust) {
  const base::WallTime now = Now();
  const absl::StatusOr<JobTrust> trust = IssueJobTrust(kUid, now);
  ASSERT_TRUE(trust.ok());
  const auto at = [&](base::Duration offset) {
    return Verify(trust->ca_pem, trust->head.certificate_pem, X509_PURPOSE_SSL_SERVER,
                  now + offset);
  };
  using std::chrono::hours, std::chrono::minutes;
  EXPECT_EQ(at(-minutes(59)), X509_V_OK);
  EXPECT_EQ(at(-minutes(61)), X509_V_ERR_CERT_NOT_YET_VALID);
  EXPECT_EQ(at(hours(24 * 366)), X509_V_OK);
  EXPECT_EQ(at(hours(10 * 24 * 365 - 2)), X509_V_OK);
  EXPECT_EQ(at(hours(10 * 24 * 365)), X509_V_ERR_CERT_HAS_EXPIRED);
}

TEST(CertificatesTest, ALeafOfAnotherJobIsNotTrusted) {
  const JobTrust trust = Issue(), other = Issue(kOtherUid), again = Issue();
  for (const JobTrust* stranger : {&other, &again}) {
    EXPECT_NE(Verify(trust.ca_pem, stranger->head.certificate_pem, X509_PURPOSE_SSL_SERVER, Now()),
              X509_V_OK);
  }
}

TEST(CertificatesTest, ALeafIsNoAuthority) {
  const JobTrust trust = Issue();
  const Certificate leaf = Parse(trust.head.certificate_pem), ca = Parse(trust.ca_pem);
  EXPECT_EQ(X509_check_ca(leaf.get()), 0);
  EXPECT_EQ(X509_check_ca(ca.get()), 1);
  EXPECT_EQ(X509_get_pathlen(ca.get()), 0);
  EXPECT_EQ(X509_get_key_usage(ca.get()), uint32_t{KU_KEY_CERT_SIGN});
  EXPECT_EQ(X509_get_key_usage(leaf.get()), uint32_t{KU_DIGITAL_SIGNATURE});
  EXPECT_EQ(X509_get_extended_key_usage(leaf.get()), uint32_t{XKU_SSL_SERVER | XKU_SSL_CLIENT});
}

TEST(CertificatesTest, NoKeyAndNoSerialIsUsedTwice) {
  const JobTrust trust = Issue();
  std::set<std::string> keys, serials;
  for (const std::string* pem :
       {&trust.ca_pem, &trust.head.certificate_pem, &trust.cpu_worker.certificate_pem,
        &trust.gpu_worker.certificate_pem}) {
    const Certificate certificate = Parse(*pem);
    const ASN1_INTEGER* serial = X509_get0_serialNumber(certificate.get());
    EXPECT_GE(serial->length, 16) << "127 random bits";
    serials.emplace(reinterpret_cast<const char*>(serial->data), serial->length);
    const ASN1_BIT_STRING* key = X509_get0_pubkey_bitstr(certificate.get());
    keys.emplace(reinterpret_cast<const char*>(key->data), key->length);
  }
  EXPECT_EQ(serials.size(), 4u);
  EXPECT_EQ(keys.size(), 4u);
}

TEST(CertificatesTest, TheOpenSslProgramSeesTheSame) {
  OpenSslProgram openssl;
  const JobTrust trust = Issue();
  const std::string ca = openssl.Write("ca.crt", trust.ca_pem);
  const std::string leaf = openssl.Write("leaf.crt", trust.gpu_worker.certificate_pem);
  const std::string key = openssl.Write("leaf.key", trust.gpu_worker.key_pem);
  for (const char* purpose : {"sslserver", "sslclient"}) {
    EXPECT_THAT(OpenSslProgram::Run(std::string("verify -x509_strict -purpose ") + purpose +
                                    " -CAfile " + ca + " " + leaf),
                HasSubstr("leaf.crt: OK"));
  }
  const std::string text = OpenSslProgram::Run("x509 -noout -text -in " + leaf);
  EXPECT_THAT(text, HasSubstr("URI:hetero://" + std::string(kUid) + "/GPUWorker"));
  EXPECT_THAT(text, HasSubstr("ASN1 OID: prime256v1"));
  EXPECT_THAT(text, HasSubstr("ecdsa-with-SHA256"));
  EXPECT_THAT(text, Not(HasSubstr("DNS:")));
  EXPECT_EQ(OpenSslProgram::Run("pkey -pubout -in " + key),
            OpenSslProgram::Run("x509 -pubkey -noout -in " + leaf));
}

TEST(CertificatesTest, TheOperatorsIdentity) {
  const base::WallTime now = Now();
  const absl::StatusOr<OperatorIdentity> identity = IssueOperatorIdentity(now);
  ASSERT_TRUE(identity.ok()) << identity.status();
  const auto at = [&](base::WallTime when) {
    return Verify(identity->ca_pem, identity->leaf.certificate_pem, X509_PURPOSE_SSL_CLIENT, when);
  };
  EXPECT_EQ(at(now), X509_V_OK);
  EXPECT_EQ(at(identity->expires - std::chrono::seconds(2)), X509_V_OK);
  EXPECT_EQ(at(identity->expires + std::chrono::seconds(2)), X509_V_ERR_CERT_HAS_EXPIRED);
  OpenSslProgram openssl;
  const std::string leaf = openssl.Write("leaf.crt", identity->leaf.certificate_pem);
  EXPECT_THAT(OpenSslProgram::Run("x509 -noout -ext subjectAltName -in " + leaf),
              HasSubstr(std::string("URI:") + kOperatorUri));
}

TEST(CertificatesTest, ARenewedIdentityIsOfTheSameAuthority) {
  using std::chrono::hours;
  const base::WallTime now = Now();
  const OperatorIdentity first = *IssueOperatorIdentity(now);
  const OperatorIdentity second = *RenewOperatorIdentity(first, now + hours(24 * 335));
  EXPECT_EQ(second.ca_pem, first.ca_pem);
  EXPECT_EQ(second.ca_key_pem, first.ca_key_pem);
  EXPECT_NE(second.leaf.key_pem, first.leaf.key_pem);
  EXPECT_EQ(second.expires - first.expires, hours(24 * 335));
  const auto at = [&](const OperatorIdentity& identity, base::WallTime when) {
    return Verify(first.ca_pem, identity.leaf.certificate_pem, X509_PURPOSE_SSL_CLIENT, when);
  };
  EXPECT_EQ(at(first, now), X509_V_OK);
  EXPECT_EQ(at(second, now + hours(24 * 400)), X509_V_OK);
  EXPECT_EQ(at(first, now + hours(24 * 400)), X509_V_ERR_CERT_HAS_EXPIRED);
}

TEST(CertificatesTest, TheOperatorsAuthorityEndsAfterTenYearsAndIsReplacedBeforeThat) {
  constexpr std::chrono::hours kYear{24 * 365};
  const base::WallTime now = Now();
  OperatorIdentity identity = *IssueOperatorIdentity(now);
  const std::string authority = identity.ca_pem;
  for (int year = 1; year <= 8; ++year) {
    identity = *RenewOperatorIdentity(identity, now + year * kYear);
    EXPECT_EQ(identity.ca_pem, authority) << year;
  }
  const base::WallTime late = now + 9 * kYear + std::chrono::hours(24);
  identity = *RenewOperatorIdentity(identity, late);
  EXPECT_NE(identity.ca_pem, authority);
  EXPECT_EQ(Verify(identity.ca_pem, identity.leaf.certificate_pem, X509_PURPOSE_SSL_CLIENT,
                   late + kYear - std::chrono::hours(2)),
            X509_V_OK);
}

TEST(CertificatesTest, AnAuthorityThatCannotSignIsRefused) {
  const OperatorIdentity one = *IssueOperatorIdentity(Now()), other = *IssueOperatorIdentity(Now());
  OperatorIdentity broken = one;
  for (const std::string& key : {other.ca_key_pem, std::string("text"), std::string()}) {
    broken.ca_key_pem = key;
    EXPECT_TRUE(absl::IsInvalidArgument(RenewOperatorIdentity(broken, Now()).status())) << key;
  }
  broken = one;
  broken.ca_pem = one.leaf.certificate_pem;
  broken.ca_key_pem = one.leaf.key_pem;
  EXPECT_TRUE(absl::IsInvalidArgument(RenewOperatorIdentity(broken, Now()).status()));
}

TEST(CertificatesTest, AUidThatWouldChangeTheExtensionIsRefused) {
  for (const char* uid : {"", "uid,DNS:*", "uid\nx", "a b"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(IssueJobTrust(uid, Now()).status())) << uid;
  }
}

// A head's status port as the operator meets it, on the loopback interface.
class Head {
 public:
  explicit Head(const base::PeerTls& tls) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", base::MakePeerServerCredentials(tls).value(), &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~Head() { server_->Shutdown(); }

  // UNIMPLEMENTED: the call has reached the service.
  grpc::StatusCode Call(const base::PeerTls& tls) {
    const auto channel = grpc::CreateChannel("127.0.0.1:" + std::to_string(port_),
                                             base::MakePeerChannelCredentials(tls).value());
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    const grpc::Slice empty;
    grpc::ByteBuffer request(&empty, 1), response;
    std::promise<grpc::StatusCode> result;
    stub.UnaryCall(&context, "/hetero.v1.Status/Stop", {}, &request, &response,
                   [&](const grpc::Status& status) { result.set_value(status.error_code()); });
    return result.get_future().get();
  }

 private:
  grpc::CallbackGenericService service_;  // answers UNIMPLEMENTED
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(CertificatesTest, TheOperatorReachesTheHeadOfTheJobItMeansAndNoOther) {
  const JobTrust trust = Issue(), other = Issue(kOtherUid);
  const absl::StatusOr<OperatorIdentity> identity = IssueOperatorIdentity(Now());
  ASSERT_TRUE(identity.ok());
  const auto head = [&](const JobTrust& own) -> base::PeerTls {
    return {
        own.ca_pem + identity->ca_pem, own.head.certificate_pem, own.head.key_pem, {kOperatorUri}};
  };
  Head server(head(trust)), stranger(head(other));
  const base::PeerTls dial{trust.ca_pem,
                           identity->leaf.certificate_pem,
                           identity->leaf.key_pem,
                           {RoleUri(kUid, "Head")}};
  EXPECT_EQ(server.Call(dial), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(stranger.Call(dial), grpc::StatusCode::UNAVAILABLE) << "another authority";

  base::PeerTls impostor = dial;  // a member of the job is not the operator
  impostor.certificate_pem = trust.gpu_worker.certificate_pem;
  impostor.key_pem = trust.gpu_worker.key_pem;
  EXPECT_EQ(server.Call(impostor), grpc::StatusCode::UNAVAILABLE);

  base::PeerTls wrong_role = dial;  // a worker that answers at the head's address
  wrong_role.allowed_uris = {RoleUri(kUid, "CPUWorker")};
  EXPECT_EQ(server.Call(wrong_role), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace hetero::reconcile
