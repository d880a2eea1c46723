#include "base/digest.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <stdexcept>

namespace semel {
namespace {

const unsigned char* bytes_of(std::string_view data) { return reinterpret_cast<const unsigned char*>(data.data()); }

std::string hmac(const EVP_MD* algorithm, std::string_view key, std::string_view data) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out;
  unsigned int size = 0;
  // A null key pointer means "the key of the call before" to OpenSSL, so an empty key still needs an address.
  const char* key_data = key.empty() ? "" : key.data();
  if (!HMAC(algorithm, key_data, static_cast<int>(key.size()), bytes_of(data), data.size(), out.data(), &size))
    throw std::runtime_error("OpenSSL could not compute an HMAC");
  return {reinterpret_cast<const char*>(out.data()), size};
}

}  // namespace

std::string sha256(std::string_view data) {
  // Looking an algorithm up costs more than a short digest, so it is fetched once.
  static EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  std::array<unsigned char, EVP_MAX_MD_SIZE> out;
  unsigned int size = 0;
  if (!algorithm || EVP_Digest(data.data(), data.size(), out.data(), &size, algorithm, nullptr) != 1)
    throw std::runtime_error("OpenSSL could not compute a SHA-256");
  return {reinterpret_cast<const char*>(out.data()), size};
}

std::string hmac_sha256(std::string_view key, std::string_view data) { return hmac(EVP_sha256(), key, data); }
std::string hmac_sha512(std::string_view key, std::string_view data) { return hmac(EVP_sha512(), key, data); }

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace semel
