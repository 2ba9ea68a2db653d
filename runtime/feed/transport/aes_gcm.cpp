#include "runtime/feed/transport/aes_gcm.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#ifdef HETERO_IPSEC_MB
#define NO_COMPAT_IMB_API_053  // names of its old versions, which are OpenSSL's, too
#include <intel-ipsec-mb.h>
#endif

namespace hetero::feed {
namespace {

class OfOpenSsl : public AesGcm {
 public:
  OfOpenSsl(const Key& key, Direction direction)
      : context_(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free),
        ok_(context_ != nullptr &&
            EVP_CipherInit_ex(context_.get(), EVP_aes_128_gcm(), nullptr, key.data(), nullptr,
                              direction == Direction::kSeal ? 1 : 0) == 1) {}
  bool ok() const { return ok_; }

  void Begin(const Nonce& nonce, const uint8_t* associated, size_t size) override {
    constexpr int kAsBefore = -1;  // sealing or opening
    ok_ =
        EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, nonce.data(), kAsBefore) == 1;
    Update(associated, nullptr, size);
  }
  void Update(const uint8_t* in, uint8_t* out, size_t size) override {
    int written = 0;
    ok_ = ok_ && EVP_CipherUpdate(context_.get(), out, &written, in, static_cast<int>(size)) == 1;
  }
  bool Seal(Tag* tag) override {
    uint8_t none[1];
    int written = 0;
    return ok_ && EVP_CipherFinal_ex(context_.get(), none, &written) == 1 &&
           EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag->data()) == 1;
  }
  bool Open(const Tag& tag) override {
    uint8_t none[1];
    int written = 0;
    return ok_ &&
           EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes,
                               const_cast<uint8_t*>(tag.data())) == 1 &&
           EVP_CipherFinal_ex(context_.get(), none, &written) == 1;
  }

 private:
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context_;
  bool ok_;
};

#ifdef HETERO_IPSEC_MB
// The library asks the processor alone: what the kernel has switched off would end the process.
bool IsSwitchedOff(uint64_t features) {
  return ((features & IMB_FEATURE_AVX) != 0 && !__builtin_cpu_supports("avx")) ||
         ((features & IMB_FEATURE_AVX2) != 0 && !__builtin_cpu_supports("avx2")) ||
         ((features & IMB_FEATURE_AVX512_SKX) != 0 && !__builtin_cpu_supports("avx512f"));
}

// The functions for this processor, found once; null: it has no AES, or they do not work.
const IMB_MGR* Functions() {
  static const IMB_MGR* const functions = []() -> const IMB_MGR* {
    IMB_MGR* const made = alloc_mb_mgr(0);
    if (made == nullptr || IsSwitchedOff(made->features)) return nullptr;
    IMB_ARCH arch = IMB_ARCH_NONE;
    init_mb_mgr_auto(made, &arch);
    const bool works = (made->features & IMB_FEATURE_SELF_TEST_PASS) != 0;
    return works && arch != IMB_ARCH_NONE && arch != IMB_ARCH_NOAESNI ? made : nullptr;
  }();
  return functions;
}

class OfIpsecMb : public AesGcm {
 public:
  OfIpsecMb(const IMB_MGR* functions, const Key& key, Direction direction)
      : functions_(functions), seals_(direction == Direction::kSeal) {
    functions_->gcm128_pre(key.data(), &key_);
  }
  ~OfIpsecMb() override {
    OPENSSL_cleanse(&key_, sizeof key_);
    OPENSSL_cleanse(&context_, sizeof context_);
  }

  void Begin(const Nonce& nonce, const uint8_t* associated, size_t size) override {
    functions_->gcm128_init(&key_, &context_, nonce.data(), associated, size);
  }
  void Update(const uint8_t* in, uint8_t* out, size_t size) override {
    (seals_ ? functions_->gcm128_enc_update : functions_->gcm128_dec_update)(&key_, &context_, out,
                                                                             in, size);
  }
  bool Seal(Tag* tag) override {
    functions_->gcm128_enc_finalize(&key_, &context_, tag->data(), kTagBytes);
    return true;
  }
  bool Open(const Tag& tag) override {
    Tag own{};
    functions_->gcm128_dec_finalize(&key_, &context_, own.data(), kTagBytes);
    return CRYPTO_memcmp(own.data(), tag.data(), kTagBytes) == 0;
  }

 private:
  const IMB_MGR* const functions_;
  const bool seals_;
  // The library writes to them in steps of 64 bytes; its own types do not say so.
  alignas(64) gcm_key_data key_;
  alignas(64) gcm_context_data context_;
};
#endif

}  // namespace

std::unique_ptr<AesGcm> AesGcm::Create(const Key& key, Direction direction) {
#ifdef HETERO_IPSEC_MB
  if (Functions() != nullptr) return std::make_unique<OfIpsecMb>(Functions(), key, direction);
#endif
  return CreateOfOpenSsl(key, direction);
}

std::unique_ptr<AesGcm> AesGcm::CreateOfOpenSsl(const Key& key, Direction direction) {
  auto made = std::make_unique<OfOpenSsl>(key, direction);
  if (!made->ok()) return nullptr;
  return made;
}

}  // namespace hetero::feed
