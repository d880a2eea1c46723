// The file source over real files and pipes; the test plays the lane.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <semel/sources/file.hpp>

#include "sources/file/gzip_for_tests.hpp"

namespace semel::file {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class FileSource : public testing::Test {
 public:
  FileSource() {
    std::string pattern = std::filesystem::temp_directory_path() / "semel-file-XXXXXX";
    folder = mkdtemp(pattern.data());
  }
  ~FileSource() override { std::filesystem::remove_all(folder); }

 protected:
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
    return folder + "/" + name;
  }
  std::string pipe(const std::string& name) const {
    const std::string path = folder + "/" + name;
    mkfifo(path.c_str(), 0600);
    return path;
  }

  std::string folder;
};

std::unique_ptr<Source> source_of(Options options) { return open(std::move(options)).value(); }

/// Everything until the end, as "transport id|body", and the error where it ends with one.
struct Read {
  std::vector<std::string> messages;
  std::optional<Error> error;
};

void settle_all(Receiver& receiver, std::vector<Delivery>& deliveries) {
  std::vector<Settlement> settlements;
  for (auto& delivery : deliveries) settlements.push_back({std::move(delivery.receipt), Done{}});
  receiver.settle(std::move(settlements));
}

Read read_all(semel::Source& source, std::size_t count_max = 3) {
  Doorbell bell;
  const auto receiver = source.open(bell).value();
  Read read;
  while (true) {
    auto batch = receiver->receive(count_max);
    if (!batch) return read.error = batch.error(), read;
    for (const auto& delivery : batch->deliveries) read.messages.push_back(delivery.transport_id + "|" + delivery.body);
    EXPECT_LE(batch->deliveries.size(), count_max);
    settle_all(*receiver, batch->deliveries);
    if (batch->ended) return read;
    if (batch->deliveries.empty()) bell.wait(20s);
  }
}

// The contract of a receiver, number by number.

TEST_F(FileSource, Contract1ReceiveReturnsAtOnceEvenFromAPipeThatHasNothing) {
  const auto source = source_of({.path = pipe("p")});
  Doorbell bell;
  const auto receiver = source->open(bell).value();
  EXPECT_TRUE(receiver->receive(10).value().deliveries.empty()) << "nobody has opened the other end";
  const int writer = ::open((folder + "/p").c_str(), O_WRONLY);
  EXPECT_TRUE(receiver->receive(10).value().deliveries.empty()) << "nothing was written";
  ASSERT_EQ(::write(writer, "{}\n", 3), 3);
  bell.wait(20s);
  auto batch = receiver->receive(10).value();
  ASSERT_EQ(batch.deliveries.size(), 1u);
  EXPECT_EQ(batch.deliveries[0].body, "{}");
  EXPECT_FALSE(batch.ended);
  close(writer);
  bell.wait(20s);
  EXPECT_TRUE(receiver->receive(10).value().ended);
}

TEST_F(FileSource, Contract1LinesComeInTheirOrderAndInBoundedBatches) {
  std::string text;
  std::vector<std::string> expected;
  for (int i = 1; i <= 5'000; ++i) {
    text += std::to_string(i) + "\n";
    expected.push_back("f:" + std::to_string(i) + "|" + std::to_string(i));
  }
  const auto source = source_of({.path = write("f", text), .buffered_lines_max = 7});
  EXPECT_EQ(read_all(*source, 10).messages, expected);
}

TEST_F(FileSource, Contract2WhatWasNotSettledIsDeliveredAgainByTheNextRun) {
  const std::string path = write("f", "1\n2\n");
  {
    const auto source = source_of({.path = path});
    Doorbell bell;
    const auto receiver = source->open(bell).value();
    while (receiver->receive(1).value().deliveries.empty()) bell.wait(20s);
  }
  const auto again = source_of({.path = path});
  EXPECT_THAT(read_all(*again).messages, ElementsAre("f:1|1", "f:2|2"));
}

TEST_F(FileSource, Contract3SettlingChangesNothingInTheFile) {
  const std::string path = write("f", "1\n");
  const auto source = source_of({.path = path});
  read_all(*source);
  EXPECT_EQ(std::filesystem::file_size(path), 2u);
}

TEST_F(FileSource, Contract4ALaneRetriesInPlaceSinceNothingIsRedelivered) {
  const auto traits = source_of({.path = write("f", "")})->traits();
  EXPECT_FALSE(traits.redelivers);
  EXPECT_TRUE(traits.ends);
  EXPECT_TRUE(traits.ordered);
}

TEST_F(FileSource, Contract5AfterStopNothingNewComesAndWhatWasTakenIsSettled) {
  const auto source = source_of({.path = write("f", "1\n2\n3\n")});
  Doorbell bell;
  const auto receiver = source->open(bell).value();
  Batch taken;
  while ((taken = receiver->receive(1).value()).deliveries.empty()) bell.wait(20s);
  receiver->stop();
  const auto after = receiver->receive(10).value();
  EXPECT_TRUE(after.deliveries.empty());
  EXPECT_TRUE(after.ended);
  settle_all(*receiver, taken.deliveries);
}

// What it reads.

TEST_F(FileSource, ALineIsAMessage) {
  const auto source =
      source_of({.name = "import", .path = write("orders.jsonl", "{\"id\":1}\n\n{\"id\":2}\r\n{\"id\":3}")});
  Doorbell bell;
  const auto receiver = source->open(bell).value();
  Batch batch;
  while ((batch = receiver->receive(1).value()).deliveries.empty()) bell.wait(20s);
  const Delivery& delivery = batch.deliveries[0];
  EXPECT_EQ(delivery.source, "import");
  EXPECT_EQ(delivery.sender, Sender::message);
  EXPECT_EQ(delivery.transport_id, "orders.jsonl:1");
  EXPECT_EQ(delivery.problem, "");
  EXPECT_FALSE(delivery.sender_verified);
  EXPECT_FALSE(delivery.receive_count);
  const auto again = source_of({.path = folder + "/orders.jsonl"});
  EXPECT_THAT(read_all(*again).messages,
              ElementsAre("orders.jsonl:1|{\"id\":1}", "orders.jsonl:3|{\"id\":2}\r", "orders.jsonl:4|{\"id\":3}"));
}

TEST_F(FileSource, AnEmptyFileEndsAtOnce) {
  const auto source = source_of({.path = write("f", "")});
  EXPECT_TRUE(read_all(*source).messages.empty());
}

TEST_F(FileSource, ALineOverTheLimitIsAMessageWithAProblem) {
  const auto source = source_of({.path = write("f", "1\n12345\n2\n"), .line_bytes_max = 4});
  Doorbell bell;
  const auto receiver = source->open(bell).value();
  std::vector<Delivery> all;
  while (all.size() < 3) {
    auto batch = receiver->receive(10).value();
    if (batch.deliveries.empty()) bell.wait(20s);
    for (auto& delivery : batch.deliveries) all.push_back(std::move(delivery));
  }
  EXPECT_EQ(all[1].body, "");
  EXPECT_EQ(all[1].problem, "line 2 is longer than 4 bytes");
  EXPECT_EQ(all[1].transport_id, "f:2");
  EXPECT_EQ(all[2].body, "2");
}

TEST_F(FileSource, GzipIsReadWhateverItsName) {
  const auto source = source_of({.path = write("f.jsonl", gzip("1\n2\n") + gzip("3\n"))});
  EXPECT_THAT(read_all(*source).messages, ElementsAre("f.jsonl:1|1", "f.jsonl:2|2", "f.jsonl:3|3"));
}

TEST_F(FileSource, GzipThatEndsTooSoonEndsWithAnErrorAfterItsWholeLines) {
  const std::string whole = gzip("1\n2\n");
  const auto source = source_of({.path = write("f.gz", whole + whole.substr(0, 12))});
  Doorbell bell;
  const auto receiver = source->open(bell).value();
  const auto read = read_all(*source);
  EXPECT_THAT(read.messages, ElementsAre("f.gz:1|1", "f.gz:2|2"));
  ASSERT_TRUE(read.error);
  EXPECT_EQ(read.error->code, ErrorCode::source_unreadable);
  EXPECT_EQ(read.error->remedy, Remedy::fix_call);
  EXPECT_THAT(read.error->message, HasSubstr(folder + "/f.gz"));
  EXPECT_THAT(read.error->message, HasSubstr("gzip"));
  EXPECT_TRUE(receiver->receive(1).value().ended) << "it is told once";
}

TEST_F(FileSource, StandardInputIsReadUnderItsOwnName) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int kept = dup(STDIN_FILENO);
  dup2(ends[0], STDIN_FILENO);
  ASSERT_EQ(::write(ends[1], "1\n2", 3), 3);
  close(ends[1]);
  close(ends[0]);
  EXPECT_THAT(read_all(*source_of({.path = "-"})).messages, ElementsAre("stdin:1|1", "stdin:2|2"));
  dup2(kept, STDIN_FILENO);
  close(kept);
}

TEST_F(FileSource, APipeThatNeverEndsHoldsUpNoShutdown) {
  const std::string path = pipe("p");
  const int writer = ::open(path.c_str(), O_RDWR);
  for (const auto* text : {"", "1\n2\n3\n4\n"}) {
    ASSERT_GE(::write(writer, text, std::string_view(text).size()), 0);
    const auto source = source_of({.path = path, .buffered_lines_max = 1});
    Doorbell bell;
    const auto receiver = source->open(bell).value();
    if (*text)
      while (receiver->receive(1).value().deliveries.empty()) bell.wait(20s);
  }
  close(writer);
}

TEST_F(FileSource, ProgressCountsBytesAndLines) {
  const auto source = source_of({.path = write("f", "1\n\n2\n")});
  EXPECT_EQ(source->progress().bytes_total, 5u);
  EXPECT_EQ(source->progress().bytes_read, 0u);
  read_all(*source);
  EXPECT_EQ(source->progress().bytes_read, 5u);
  EXPECT_EQ(source->progress().lines, 2u);
  EXPECT_EQ(source_of({.path = pipe("p")})->progress().bytes_total, 0u);
}

TEST_F(FileSource, SaysWhatItCannotRead) {
  for (const std::string& path : {folder + "/missing", folder, std::string()}) {
    const auto opened = open({.path = path});
    ASSERT_FALSE(opened) << path;
    EXPECT_EQ(opened.error().code, ErrorCode::source_unreadable);
    EXPECT_THAT(opened.error().message, HasSubstr(path));
  }
  EXPECT_THAT(open({.path = folder}).error().message, HasSubstr("directory"));
}

}  // namespace
}  // namespace semel::file
