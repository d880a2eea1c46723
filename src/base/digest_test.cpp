#include "base/digest.hpp"

#include <gtest/gtest.h>

#include "base/encoding.hpp"

namespace semel {
namespace {

TEST(Digest, Sha256GivesThePublishedDigests) {
  struct Case {
    std::string data, digest;
  };
  for (const auto& [data, digest] : {
           Case{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
           Case{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
           Case{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
       })
    EXPECT_EQ(hex_encode(sha256(data)), digest) << data;
}

TEST(Digest, HmacGivesTheCodesOfRfc4231) {
  struct Case {
    std::string key, data, sha256, sha512;
  };
  for (const auto& [key, data, sha256, sha512] : {
           Case{std::string(20, '\x0b'), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
                "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde"
                "daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"},
           Case{"Jefe", "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
                "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"},
           Case{std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
                "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f352"
                "6b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598"},
       }) {
    EXPECT_EQ(hex_encode(hmac_sha256(key, data)), sha256) << data;
    EXPECT_EQ(hex_encode(hmac_sha512(key, data)), sha512) << data;
  }
}

TEST(Digest, AnEmptyKeyIsNotTheKeyOfTheCallBefore) {
  static_cast<void>(hmac_sha256("another key", "data"));
  EXPECT_EQ(hex_encode(hmac_sha256({}, {})), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(Digest, EqualMeansEveryByteAndTheLength) {
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_TRUE(equal_in_constant_time({"a\0b", 3}, {"a\0b", 3}));
  EXPECT_FALSE(equal_in_constant_time({"a\0b", 3}, {"a\0c", 3}));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "xbc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
  EXPECT_FALSE(equal_in_constant_time("", "a"));
}

}  // namespace
}  // namespace semel
