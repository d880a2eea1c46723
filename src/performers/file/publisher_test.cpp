// Publications into real files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <semel/document.hpp>
#include <semel/performers/file.hpp>
#include <sstream>

#include "performers/file/line.hpp"

namespace semel::file {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

Call call_of(std::string id, std::string body = "b") {
  return {.id = std::move(id), .effect = "log", .request = std::move(body)};
}

TEST(PublishedLine, IsJsonThatHoldsEverything) {
  auto call = call_of("i", "{\"a\":\n\"\xc3\xa4\"}");
  EXPECT_EQ(line_of(call).value(),
            "{\"id\":\"i\",\"target\":\"log\",\"attributes\":{},\"body\":\"{\\\"a\\\":\\n\\\"\xc3\xa4\\\"}\"}\n");
  call.order_key = "k";
  call.attributes = {{"A", "1"}, {"B", "2"}, {"b", "3"}, {"C", ""}};
  call.request = std::string("\xff\0", 2);
  EXPECT_EQ(line_of(call).value(),
            R"({"id":"i","target":"log","key":"k","attributes":{"A":"1","B":["2","3"],"C":""},"body_base64":"/wA="})"
            "\n");
  EXPECT_TRUE(Document::parse(line_of(call).value()));
  call.order_key = "\xff";
  EXPECT_THAT(line_of(call).value(), HasSubstr(R"("key_base64":"/w==")"));
  call.attributes = {{"A", "\xff"}};
  EXPECT_FALSE(line_of(call));
}

class FilePublisherTest : public testing::Test {
 public:
  FilePublisherTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "semel-out-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/out.jsonl";
  }
  ~FilePublisherTest() override { std::filesystem::remove_all(folder_); }

 protected:
  void open() {
    publisher_ = file_publisher({.path = path_, .calls_max = 100}).value();
    publisher_->open(bell_);
  }
  std::vector<Performed> collect(std::size_t count) {
    std::vector<Performed> all;
    while (true) {
      for (auto& one : publisher_->collect()) all.push_back(std::move(one));
      if (all.size() >= count) return all;
      bell_.wait(1h);
    }
  }
  CallReport publish(Call call) {
    publisher_->begin(std::move(call));
    return collect(1).at(0).report;
  }
  void write(std::string_view bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string read(const std::string& path) const {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::istringstream text(read(path_));
    for (std::string line; std::getline(text, line);) all.push_back(line);
    return all;
  }

  std::string folder_;
  std::string path_;
  Doorbell bell_;
  std::unique_ptr<Performer> publisher_;
};

TEST_F(FilePublisherTest, AppendsInTheOrderBegun) {
  open();
  EXPECT_EQ(publisher_->room(), 100u);
  for (int i = 0; i < 100; ++i) publisher_->begin(call_of(std::to_string(i)));
  EXPECT_EQ(publisher_->room(), 0u);
  for (const auto& one : collect(100)) EXPECT_EQ(one.report.verdict, CallVerdict::succeeded) << one.id;
  EXPECT_EQ(publisher_->room(), 100u);
  const auto all = lines();
  ASSERT_THAT(all, SizeIs(100));
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(all[static_cast<std::size_t>(i)] + "\n", line_of(call_of(std::to_string(i))).value());
}

TEST_F(FilePublisherTest, GoesOnWhereItLeftOffAndEndsALineThatACrashCutOff) {
  write("{\"id\":\"old\"}\n{\"id\":\"to");
  open();
  EXPECT_EQ(publish(call_of("new")).verdict, CallVerdict::succeeded);
  EXPECT_THAT(lines(), ElementsAre("{\"id\":\"old\"}", "{\"id\":\"to", HasSubstr("\"new\"")));
  // Also one of another process, while this one is running.
  std::ofstream(path_, std::ios::app) << "{\"torn";
  EXPECT_EQ(publish(call_of("next")).verdict, CallVerdict::succeeded);
  EXPECT_THAT(lines(),
              ElementsAre("{\"id\":\"old\"}", "{\"id\":\"to", HasSubstr("\"new\""), "{\"torn", HasSubstr("\"next\"")));
}

TEST_F(FilePublisherTest, AFileThatWasMovedAwayIsMadeAgain) {
  open();
  publish(call_of("one"));
  std::filesystem::rename(path_, path_ + ".1");
  EXPECT_EQ(publish(call_of("two")).verdict, CallVerdict::succeeded);
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("\"two\"")));
  EXPECT_THAT(read(path_ + ".1"), HasSubstr("\"one\""));
}

TEST_F(FilePublisherTest, WhatIsOnlyPartlyWrittenIsNotConfirmedAndSpoilsNothingElse) {
  open();
  publish(call_of("one"));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{.rlim_cur = 200'000, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  const auto partly = publish(call_of("two", std::string(300'000, 'x')));
  const auto nothing = publish(call_of("three"));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  EXPECT_EQ(partly.verdict, CallVerdict::unknown);
  EXPECT_THAT(partly.outcome.detail, HasSubstr(path_));
  EXPECT_EQ(nothing.verdict, CallVerdict::not_done);
  EXPECT_EQ(publish(call_of("two")).verdict, CallVerdict::succeeded);
  const auto all = lines();
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_FALSE(Document::parse(all[1])) << "the torn one";
  EXPECT_EQ(all[2] + "\n", line_of(call_of("two")).value());
}

TEST_F(FilePublisherTest, AFolderThatIsGoneIsNotDoneUntilItIsBack) {
  open();
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(publish(call_of("one")).verdict, CallVerdict::not_done);
  std::filesystem::create_directory(folder_);
  EXPECT_EQ(publish(call_of("one")).verdict, CallVerdict::succeeded);
  EXPECT_THAT(lines(), SizeIs(1));
}

TEST_F(FilePublisherTest, APublicationThatNoLineCanHoldIsFailedAlone) {
  open();
  auto bad = call_of("bad");
  bad.attributes = {{"A", "\xff"}};
  publisher_->begin(call_of("good"));
  publisher_->begin(std::move(bad));
  const auto ended = collect(2);
  EXPECT_EQ(ended[0].report.verdict, CallVerdict::succeeded);
  EXPECT_EQ(ended[1].report.verdict, CallVerdict::failed);
  EXPECT_THAT(lines(), SizeIs(1));
}

TEST_F(FilePublisherTest, SeveralMayAppendToOneFile) {
  open();
  Doorbell other_bell;
  const auto other = file_publisher({.path = path_}).value();
  other->open(other_bell);
  for (int i = 0; i < 50; ++i) {
    publisher_->begin(call_of("a" + std::to_string(i), std::string(10'000, 'a')));
    other->begin(call_of("b" + std::to_string(i), std::string(10'000, 'b')));
  }
  collect(50);
  for (std::size_t count = 0; (count += other->collect().size()) < 50;) other_bell.wait(1h);
  const auto all = lines();
  EXPECT_THAT(all, SizeIs(100));
  for (const auto& line : all) EXPECT_TRUE(Document::parse(line));
}

TEST_F(FilePublisherTest, AfterItsCloseNothingOfThatUseIsTouchedOrToldAgain) {
  open();
  publisher_->close();
  auto first = std::make_unique<Doorbell>();
  publisher_->open(*first);
  for (int i = 0; i < 100; ++i) publisher_->begin(call_of("abandoned"));
  publisher_->close();
  first.reset();
  const auto written = lines().size();
  publisher_->close();
  publisher_->open(bell_);
  EXPECT_EQ(publisher_->room(), 100u);
  EXPECT_TRUE(publisher_->collect().empty());
  publisher_->begin(call_of("next"));
  EXPECT_EQ(collect(1).at(0).id, "next");
  EXPECT_THAT(lines(), SizeIs(written + 1)) << "nobody writes what was abandoned";
}

TEST_F(FilePublisherTest, WhatIsNoRegularFileIsRefused) {
  const std::string pipe = folder_ + "/pipe";
  mkfifo(pipe.c_str(), 0600);
  for (const auto& path : {folder_, folder_ + "/none/out.jsonl", pipe, std::string("/dev/null"), std::string()}) {
    const auto made = file_publisher({.path = path});
    ASSERT_FALSE(made) << path;
    EXPECT_EQ(made.error().code, ErrorCode::config_bad_value);
    EXPECT_THAT(made.error().message, HasSubstr(path));
  }
}

}  // namespace
}  // namespace semel::file
