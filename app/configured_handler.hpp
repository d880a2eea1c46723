// A handler of the configuration file as one of the library's: the same for every store with SQL sessions.
#pragma once

#include <semel/consumer.hpp>

#include "config/config.hpp"
#include "configured_calls.hpp"

namespace semel::app {

/// The first statement of a `unique` or `version` handler is its guard: where it changes nothing, the rest is not run.
inline Answer run_statements(const HandlerConfig& handler, const Message& message, Work<SqlSession>& work) {
  const bool guarded = handler.options.guard == Guard::unique || handler.options.guard == Guard::version;
  for (std::size_t i = 0; i < handler.execute.size(); ++i) {
    const auto values = values_for(handler.execute[i], message);
    if (guarded && i == 0) {
      if (!work.apply(handler.execute[i].sql, std::span(values))) break;
    } else {
      work.execute(handler.execute[i].sql, std::span(values));
    }
  }
  for (const auto& call : handler.calls) work.intend(intention_of(call, message));
  for (const auto& publish : handler.publish) work.publish(publication_of(publish, message));
  return answer_for(handler.answer, message);
}

inline std::vector<Outcome> run_batch_statement(const HandlerConfig& handler, std::span<const Message> messages,
                                                BatchWork<SqlSession>& work) {
  std::vector<std::vector<Value>> columns(handler.execute_batch->parameters.size());
  std::vector<Outcome> answers;
  for (const auto& message : messages) {
    auto values = values_for(*handler.execute_batch, message);
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].push_back(std::move(values[i]));
    const auto number = answers.size();
    for (const auto& call : handler.calls) work.intend(number, intention_of(call, message));
    for (const auto& publish : handler.publish) work.publish(number, publication_of(publish, message));
    answers.push_back(answer_for(handler.answer, message));
  }
  work.execute_set(handler.execute_batch->sql, columns);
  return answers;
}

template <class StoreT>
void add_handler(Consumer<StoreT>& consumer, const HandlerConfig& handler) {
  if (handler.execute_batch) {
    consumer.handle_batch(handler.options, [handler](std::span<const Message> messages, BatchWork<SqlSession>& work) {
      return run_batch_statement(handler, messages, work);
    });
  } else {
    consumer.handle(handler.options, [handler](const Message& message, Work<SqlSession>& work) {
      return run_statements(handler, message, work);
    });
  }
}

}  // namespace semel::app
