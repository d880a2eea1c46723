// Dead letters: written from tasks, and read back as deliveries when an operator sends them again.
#pragma once

#include <map>
#include <semel/source.hpp>
#include <semel/store.hpp>
#include <string>
#include <vector>

#include "engine/task.hpp"

namespace semel::engine {

/// The letter for a task. Its id is derived from the message, so that a redelivery does not add a second one, wherever
/// the message has something that tells it from others: a transport id or a key.
DeadLetter write_letter(const Task& task, SetAsideReason reason, const Error& why);

/// A source of chosen dead letters. It remembers which of them got through.
class LetterSource : public Source {
 public:
  explicit LetterSource(std::vector<DeadLetter> letters);

  const std::string& name() const override { return name_; }
  SourceTraits traits() const override { return {.redelivers = true, .ends = true, .ordered = true}; }
  Result<std::unique_ptr<Receiver>> open(Doorbell& bell) override;

  const DeadLetter& letter(const Receipt& receipt) const { return letters_[receipt.token()]; }
  const std::vector<std::string>& got_through() const { return got_through_; }

 private:
  class LetterReceiver;

  std::string name_ = "dead-letters";
  std::vector<DeadLetter> letters_;
  std::vector<std::string> got_through_;
};

}  // namespace semel::engine
