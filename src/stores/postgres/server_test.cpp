// What `open`, `check` and `migrate` say of servers, roles, settings and connection strings.
#include <algorithm>

#include "stores/postgres/live_server.hpp"

namespace semel::postgres {
namespace {

class PostgresServer : public LiveServer {
 protected:
  const Finding* refusal(const std::vector<Finding>& findings, ErrorCode code) {
    const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) {
      return finding.severity == Finding::Severity::refuse && finding.code == code;
    });
    return found == findings.end() ? nullptr : &*found;
  }
  static std::size_t refusals(const std::vector<Finding>& findings) {
    return static_cast<std::size_t>(std::count_if(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.severity == Finding::Severity::refuse;
    }));
  }

  /// A role for this test alone, gone with it.
  struct Role {
    Bystander& server;
    std::string name;
    Role(Bystander& s, std::string n, const std::string& attributes) : server(s), name(std::move(n)) {
      server.run("CREATE ROLE " + name + " LOGIN " + attributes);
    }
    ~Role() {
      server.run("DROP OWNED BY " + name);
      server.run("DROP ROLE " + name);
    }
  };
  std::string as(const Role& role) {
    return "host=" + live_server_part("host") + " port=" + live_server_part("port") +
           " dbname=" + live_server_part("dbname") + " user=" + role.name;
  }
};

TEST_F(PostgresServer, WithSafeSettingsIsNotRefusedAndItsDefaultLogSizeIsNoted) {
  const auto store = migrated();
  const auto findings = store->check().value();
  EXPECT_EQ(refusals(findings), 0u);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].severity, Finding::Severity::note);
  EXPECT_NE(findings[0].message.find("max_wal_size"), std::string::npos);
}

TEST_F(PostgresServer, WithAReadOnlyDefaultIsRefusedByCheckAndByBegin) {
  migrated();
  options_.connection += "?options=-cdefault_transaction_read_only%3Don";
  const auto store = opened(options_);
  EXPECT_NE(refusal(store->check().value(), ErrorCode::store_read_only), nullptr);
  const auto begun = session_of(*store)->begin();
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, ErrorCode::store_read_only);
}

TEST_F(PostgresServer, IsReachedByTheTlsThatTheConnectionStringAsksFor) {
  const char* certificate = std::getenv("SEMEL_TEST_POSTGRES_CERTIFICATE");
  ASSERT_NE(certificate, nullptr) << "run the tests by `script/with-postgres ctest …`";
  migrated();
  const auto plain = options_.connection;
  const auto encrypted = [&](const std::string& tls) {
    options_.connection = plain + "?sslmode=" + tls;
    const auto store = opened(options_);
    const auto session = session_of(*store);
    session->begin().value();
    return session->query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", {}).value().rows.at(0).at(0);
  };
  EXPECT_EQ(encrypted("disable"), Value(false));
  EXPECT_EQ(encrypted("require"), Value(true));
  EXPECT_EQ(encrypted("verify-full&sslrootcert=" + std::string(certificate)), Value(true));
}

TEST_F(PostgresServer, IsNotBelievedWhereItsCertificateIsAnothers) {
  options_.connection += "?sslmode=verify-full&sslrootcert=/etc/ssl/certs/ca-certificates.crt";
  const auto begun = session_of(*opened(options_))->begin();
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, ErrorCode::store_unreachable);
  EXPECT_NE(begun.error().message.find("certificate"), std::string::npos) << begun.error().message;
}

TEST_F(PostgresServer, WithoutRightsForTheRoleIsRefusedWithWhatToGrant) {
  migrated();
  const Role role(bystander_, "semel_no_rights", "");
  bystander_.run("GRANT USAGE ON SCHEMA " + quoted_identifier(options_.schema) + " TO " + role.name);
  bystander_.run("GRANT SELECT ON " + in_schema("migrations") + " TO " + role.name);
  options_.connection = as(role);
  const auto findings = opened(options_)->check().value();
  const auto* refused = refusal(findings, ErrorCode::permission_denied);
  ASSERT_NE(refused, nullptr);
  EXPECT_NE(refused->message.find("GRANT"), std::string::npos);
}

TEST_F(PostgresServer, SaysWhatARoleNeedsToMigrate) {
  const Role role(bystander_, "semel_cannot_create", "");
  options_.connection = as(role);
  const auto migrated = opened(options_)->migrate();
  ASSERT_FALSE(migrated);
  EXPECT_EQ(migrated.error().code, ErrorCode::permission_denied);
  EXPECT_EQ(migrated.error().remedy, Remedy::ask_operator);
  EXPECT_NE(migrated.error().message.find("CREATE on the database"), std::string::npos) << migrated.error().message;
}

TEST_F(PostgresServer, MigratesASchemaThatAnAdministratorMadeForTheRole) {
  const Role role(bystander_, "semel_owner", "");
  bystander_.run("CREATE SCHEMA " + quoted_identifier(options_.schema) + " AUTHORIZATION " + role.name);
  options_.connection = as(role);
  const auto store = opened(options_);
  EXPECT_EQ(store->migrate().value(), (std::vector{1, 2}));
  EXPECT_EQ(refusals(store->check().value()), 0u);
}

TEST_F(PostgresServer, SaysThatTheSchemaIsMissingWhereASessionMeetsNone) {
  const auto store = opened(options_);
  const auto session = session_of(*store);
  session->begin().value();
  const auto claimed = session->claim(std::vector{id("k")});
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, ErrorCode::schema_missing);
  EXPECT_EQ(claimed.error().remedy, Remedy::ask_operator);
}

TEST_F(PostgresServer, RefusesAWrongPasswordWithoutRepeatingIt) {
  const Role role(bystander_, "semel_password", "PASSWORD 'another'");  // the private server asks this one
  const auto address =
      "@" + live_server_part("host") + ":" + live_server_part("port") + "/" + live_server_part("dbname");
  options_.connection = "postgresql://semel_password:hunter2" + address;
  const auto begun = session_of(*opened(options_))->begin();
  options_.connection = "postgresql://semel_password:another" + address;
  EXPECT_TRUE(session_of(*opened(options_))->begin().has_value());
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, ErrorCode::permission_denied);
  EXPECT_EQ(begun.error().remedy, Remedy::ask_operator);
  EXPECT_EQ(begun.error().message.find("hunter2"), std::string::npos) << begun.error().message;
}

TEST_F(PostgresServer, SaysThatADatabaseIsNotThere) {
  options_.connection = live_server_at(live_server_part("port"), "no_such_database");
  const auto checked = opened(options_)->check();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::store_unreachable);
  EXPECT_EQ(checked.error().remedy, Remedy::ask_operator);
}

TEST(PostgresConnectionString, IsReadWhereItCanBe) {
  for (const char* text : {"postgresql://u:p@h:1/db", "host=h", "", "postgresql:///shop?host=/tmp"})
    EXPECT_TRUE(open({.connection = text}).has_value()) << text;
}

TEST(PostgresConnectionString, IsNeverQuotedWhereItCannotBeRead) {
  for (const std::string text :
       {"postgresql://u:hunter2@word@h/db", "postgresql://u:x@h@hunter2:port/db", "postgresql://u:%zz-hunter2@h/db",
        "host=h password=my hunter2", "password='hunter2", "postgresql://u@h/db?password-hunter2",
        "postgresql://u:[hunter2@h/db?nonsense=hunter2", "postgresql://[hunter2"}) {
    const auto opened = open({.connection = text});
    ASSERT_FALSE(opened) << text;
    EXPECT_EQ(opened.error().code, ErrorCode::config_bad_value);
    EXPECT_EQ(opened.error().message.find("hunter2"), std::string::npos) << opened.error().message;
  }
}

TEST(PostgresSchemaName, IsRefusedWherePostgresqlWouldChangeIt) {
  for (const std::string& name : {std::string(), std::string(64, 'x'), std::string("a\0b", 3)})
    EXPECT_EQ(open({.connection = "", .schema = name}).error().code, ErrorCode::config_bad_value);
}

class PostgresEncoding : public LiveServer, public ::testing::WithParamInterface<std::string> {};

TEST_P(PostgresEncoding, ChangesNoKey) {
  const auto database = "\"encoding_" + GetParam() + "\"";
  bystander_.run("CREATE DATABASE " + database + " TEMPLATE template0 LOCALE 'C' ENCODING '" + GetParam() + "'");
  options_.connection = live_server_at(live_server_part("port"), "encoding_" + GetParam());
  {
    const auto store = migrated();
    const auto session = session_of(*store);
    for (const std::string key : {"\xe2\x82\xac", "\xff", "\xe9", "\xc3\xa9"}) {
      auto record = fresh(id(key, "h\xc3\xa4ndler", key));
      record.transport_id = key;
      record_in_one_go(*session, record).value();
      EXPECT_EQ(store->find_record({record.scope, record.key}).value()->transport_id, key);
    }
    const auto findings = store->check().value();
    EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
      return finding.message.find(GetParam()) != std::string::npos;
    }));
  }
  bystander_.run("DROP DATABASE " + database + " WITH (FORCE)");
}

INSTANTIATE_TEST_SUITE_P(All, PostgresEncoding, ::testing::Values("SQL_ASCII", "LATIN1"),
                         [](const auto& encoding) { return encoding.param; });

}  // namespace
}  // namespace semel::postgres
