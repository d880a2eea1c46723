#include "config/redactor.hpp"

#include <gtest/gtest.h>

namespace semel::app {
namespace {

TEST(Redactor, removes_every_spelling_of_a_password_in_a_connection) {
  struct Case {
    const char* connection;
    const char* message;
    const char* cleaned;
  };
  const Case cases[] = {
      {"postgresql://shop:hunter2@db/shop", "could not connect as shop with hunter2",
       "could not connect as shop with ***"},
      {"postgresql://shop:a%40b@db/shop", "tried a@b and a%40b", "tried *** and ***"},
      {"postgresql://db/shop?user=shop&password=hunter2", "password=hunter2", "password=***"},
      {"host=db password=hunter2 user=shop", "bad: host=db password=hunter2", "bad: host=db password=***"},
      {"host=db password='two words'", "'two words'", "'***'"},
      {"postgresql://db/shop?sslpassword=k3y", "k3y", "***"},
      {"postgresql://shop@db/shop", "shop@db", "shop@db"},
      {"sqlite:shop.db", "shop.db", "shop.db"},
  };
  for (const auto& c : cases) {
    Redactor redactor;
    redactor.add_passwords_of(c.connection);
    EXPECT_EQ(redactor.clean(c.message), c.cleaned) << c.connection;
  }
}

TEST(Redactor, removes_the_longer_of_two_secrets_that_begin_alike) {
  Redactor redactor;
  redactor.add("whsec_1");
  redactor.add("whsec_123");
  redactor.add("");
  EXPECT_EQ(redactor.clean("whsec_123 whsec_1 whsec_1"), "*** *** ***");
}

}  // namespace
}  // namespace semel::app
