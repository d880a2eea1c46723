// Promises 23 and 25: messages to a queue of the store, and who takes them.
#include <array>
#include <future>
#include <set>

#include "testing/store_scene.hpp"

namespace semel::testing {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

constexpr std::size_t many = 1000;
using Bodies = std::vector<std::string>;

OutboxMessage message(int ordinal) {
  auto made = message_of("a", ordinal);
  made.queued = true;
  return made;
}

void publish(Scene& scene, const std::vector<OutboxMessage>& messages) {
  in_one_go(*scene.session(), [&](Session& session) { must(session.outbox().publish(messages), "publish"); });
}

std::vector<QueuedMessage> take(Scene& scene, std::size_t count_max = many, std::chrono::milliseconds lease = 1h) {
  return must(scene.database().open()->take_queued("mails", count_max, lease), "take_queued");
}

void end(Scene& scene, const QueueEnd& ended, const std::string& queue = "mails") {
  must(scene.store().end_queued(queue, {&ended, 1}), "end_queued");
}

Bodies bodies(const std::vector<QueuedMessage>& messages) {
  Bodies all;
  for (const auto& one : messages) all.push_back(one.body);
  return all;
}

void a_queued_message_is_there_with_the_commit(const StoreUnderTest& store) {
  Scene scene(store);
  auto given = message(1);
  given.publication.body = "{\"a\":\0\xff}\r\n\0"s;
  given.publication.attributes = {{"x", "\0\xff"s}, {"x", ""}, {"", "no name"}};
  given.publication.order_key = "\0order\xff"s;
  const auto session = scene.session();
  if (!scene.store().traits().single_writer) {
    begin(*session);
    must(session->outbox().publish({&given, 1}), "publish");
    must(session->synchronise(), "synchronise");
    require(take(scene).empty(), "a queued message was taken before its commit");
    session->rollback();
    require(take(scene).empty(), "a queued message was kept through a rollback");
  }
  publish(scene, {given});
  const auto taken = take(scene);
  require(taken.size() == 1, "a queued message is not there after its commit");
  require(taken[0].id == given.id && taken[0].body == given.publication.body &&
              taken[0].order_key == given.publication.order_key &&
              taken[0].attributes.entries() == given.publication.attributes.entries(),
          "a queued message came back as other bytes");
  require(taken[0].receive_count == 1, "a queued message's first receipt does not count as the first");
  require(taken[0].sent_at > std::chrono::system_clock::time_point(), "a queued message does not say when it was sent");
}

void nothing_queued_is_relayed(const StoreUnderTest& store) {
  Scene scene(store);
  auto sent = message(2);
  sent.queued = false;
  publish(scene, {message(1), sent});
  const std::array targets{"mails"s};
  const auto relayed = in_one_go(
      *scene.session(), [&](Session& session) { return must(session.outbox().take(targets, many, 1h), "take"); });
  require(relayed.size() == 1 && relayed[0].id == sent.id, "take gave out a queued message, or missed one that is not");
  require(must(scene.store().outbox({}), "outbox").size() == 1, "a queued message is listed among those to be sent");
  require(bodies(take(scene)) == Bodies{"a-1"}, "a queue gave out a message that is to be sent, or missed its own");
}

void gives_the_oldest_first(const StoreUnderTest& store) {
  Scene scene(store);
  std::vector<OutboxMessage> messages;
  for (int ordinal = 1; ordinal <= 5; ++ordinal) messages.push_back(message(ordinal));
  messages[1].publication.to = "Mails";
  publish(scene, messages);
  require(take(scene, 0).empty(), "take_queued gives more than it was asked for");
  require(bodies(take(scene, 2)) == Bodies{"a-1", "a-3"}, "take_queued does not give the oldest of its queue first");
  require(bodies(take(scene)) == Bodies{"a-4", "a-5"}, "take_queued gave a message to two, or not in order");
  require(take(scene).empty(), "take_queued gave a message to two");
}

void comes_again_when_it_was_not_ended(const StoreUnderTest& store) {
  Scene scene(store);
  publish(scene, {message(1)});
  require(take(scene, many, 0ms).at(0).receive_count == 1, "a first receipt does not count as the first");
  const auto second = take(scene);
  require(second.size() == 1, "a message that was not ended did not come again when its lease had run out");
  require(second[0].receive_count == 2, "a message that came again has no higher receive count");
  require(take(scene).empty(), "a message was given to two while its lease runs");
}

void ends_with_the_current_count(const StoreUnderTest& store) {
  Scene scene(store);
  publish(scene, {message(1), message(2)});
  const auto first = take(scene, many, 0ms);
  const auto second = take(scene);
  require(second.size() == 2, "a message that was not ended did not come again when its lease had run out");
  end(scene, {.id = first[0].id, .receive_count = first[0].receive_count});
  end(scene, {.id = first[0].id, .receive_count = first[0].receive_count, .due_in = 0ms});
  end(scene, {.id = second[0].id, .receive_count = second[0].receive_count}, "another");
  require(take(scene).empty(), "an end changed a message that named a receipt that is over");
  end(scene, {.id = second[0].id, .receive_count = second[0].receive_count, .due_in = 0ms});
  end(scene, {.id = second[1].id, .receive_count = second[1].receive_count});
  const auto third = take(scene);
  require(bodies(third) == Bodies{"a-1"}, "an end took out a message that was to come again, or left one that was not");
  require(third[0].receive_count == 3, "a message that came again has no higher receive count");
  end(scene, {.id = third[0].id, .receive_count = 3, .due_in = 1h});
  require(take(scene).empty(), "a message came before it was due again");
  end(scene, {.id = third[0].id, .receive_count = 3});
  publish(scene, {message(1)});
  require(take(scene).size() == 1, "a message that was done did not leave");
}

void gives_each_to_one_of_many(const StoreUnderTest& store) {
  Scene scene(store);
  std::vector<OutboxMessage> messages;
  for (int ordinal = 1; ordinal <= 40; ++ordinal) messages.push_back(message(ordinal));
  publish(scene, messages);
  const auto consume = [&] {
    const auto process = scene.database().open();
    Bodies mine;
    for (;;) {
      const auto taken = process->take_queued("mails", 3, 1h);
      if (!taken && taken.error().remedy == Remedy::retry_later) continue;
      const auto batch = bodies(must(taken, "take_queued"));
      if (batch.empty() || mine.size() > many) return mine;
      mine.insert(mine.end(), batch.begin(), batch.end());
    }
  };
  std::vector<std::future<Bodies>> consumers;
  for (int number = 0; number < 3; ++number) consumers.push_back(std::async(std::launch::async, consume));
  std::multiset<std::string> all;
  for (auto& one : consumers)
    for (const auto& body : one.get()) all.insert(body);
  require(all.size() == messages.size() && std::set(all.begin(), all.end()).size() == messages.size(),
          "consumers side by side did not get each message once");
}

constexpr std::array promises{
    Promise{23, "a_queued_message_is_there_with_the_commit", a_queued_message_is_there_with_the_commit},
    Promise{23, "nothing_queued_is_relayed", nothing_queued_is_relayed},
    Promise{25, "a_queue_gives_the_oldest_first", gives_the_oldest_first},
    Promise{25, "a_queued_message_comes_again_until_it_is_ended", comes_again_when_it_was_not_ended},
    Promise{25, "a_queued_message_ends_with_its_receive_count", ends_with_the_current_count},
    Promise{25, "consumers_side_by_side_get_each_message_once", gives_each_to_one_of_many},
};

}  // namespace

std::span<const Promise> queue_promises() { return promises; }

}  // namespace semel::testing
