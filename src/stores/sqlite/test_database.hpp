// SQLite files for tests: each in a folder of its own, which goes with it. In memory where the system has a file
// system there: what a power cut would leave is not what these tests can show, and fsync is most of their time.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <semel/stores/sqlite.hpp>
#include <semel/testing/store_conformance.hpp>
#include <string>

namespace semel::sqlite {

class TestFile final : public testing::TestDatabase {
 public:
  TestFile() {
    const std::filesystem::path memory("/dev/shm");
    const auto place = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    std::string name = (place / "semel-sqlite-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("cannot make a folder for a test");
    folder_ = name;
  }
  ~TestFile() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  const std::filesystem::path& folder() const { return folder_; }
  std::string path() const { return (folder_ / "test.db").string(); }
  Options options() const { return {.path = path(), .lock_timeout = std::chrono::milliseconds(200)}; }

  std::unique_ptr<semel::Store> open() override { return sqlite::open(options()).value(); }
  std::unique_ptr<semel::Store> open_unsafe(bool allowed_by_name) override {
    auto unsafe = options();
    unsafe.synchronous = Options::Synchronous::normal;
    unsafe.allow_unsafe_durability = allowed_by_name;
    return sqlite::open(unsafe).value();
  }
  std::string migrations_table() const override { return "semel_migrations"; }

 private:
  std::filesystem::path folder_;
};

inline testing::StoreUnderTest store_under_test() {
  return {.make_database = [] { return std::make_unique<TestFile>(); }};
}

}  // namespace semel::sqlite
