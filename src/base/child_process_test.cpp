#include "base/child_process.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace semel {
namespace {

ChildProcess shell(const std::string& script) {
  return ChildProcess::start({.command = {"/bin/sh", "-c", script}}).value();
}

TEST(ChildProcess, WaitsAtEachStepUntilReleased) {
  auto child = shell("echo one >&3; read x <&4; echo two >&3; read x <&4; exit 7");
  EXPECT_EQ(child.next_step(), "one");
  child.release();
  EXPECT_EQ(child.next_step(), "two");
  child.release();
  EXPECT_EQ(child.next_step(), std::nullopt);
  EXPECT_EQ(child.wait(), 7);
}

TEST(ChildProcess, IsKilledAtTheStepItWaitsAt) {
  auto child = shell("echo one >&3; read x <&4; echo two >&3; read x <&4; echo three >&3; read x <&4");
  EXPECT_TRUE(child.run_until("two"));
  child.kill();
  EXPECT_EQ(child.wait(), 128 + SIGKILL);
  EXPECT_EQ(child.next_step(), std::nullopt);
}

TEST(ChildProcess, SaysSoWhereTheStepNeverComes) {
  auto child = shell("echo one >&3; read x <&4");
  EXPECT_FALSE(child.run_until("three"));
}

TEST(ChildProcess, ProgramThatIsNotThereIsAnError) {
  const auto child = ChildProcess::start({.command = {"/nowhere/to/be/found"}});
  ASSERT_FALSE(child);
  EXPECT_NE(child.error().message.find("/nowhere/to/be/found"), std::string::npos);
}

}  // namespace
}  // namespace semel
