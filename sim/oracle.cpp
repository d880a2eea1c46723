#include "oracle.hpp"

#include <algorithm>

namespace semel::sim {
namespace {

using Kind = Happening::Kind;

/// How long it may take a process to write down what it has heard, from when it wakes.
constexpr std::chrono::seconds time_to_write(8);

std::string text_of(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text) return *text;
  const auto* number = std::get_if<std::int64_t>(&value);
  return number ? std::to_string(*number) : std::string();
}

}  // namespace

void Oracle::accuse(std::string broken) {
  if (broken_) return;
  world_.say(nullptr, [&] { return "BROKEN: " + broken; });
  broken_ = std::move(broken);
}

std::vector<std::vector<Value>> Oracle::rows_of(const std::string& table, const std::string& key) const {
  std::vector<std::vector<Value>> rows;
  database_.user_tables.at(table).rows.each(nullptr, [&](std::int64_t, const std::vector<Value>& row) {
    if (text_of(row.front()) == key) rows.push_back(row);
  });
  return rows;
}

bool Oracle::has_letter(const Happening& happening) const {
  bool found = false;
  database_.letters.each(
      nullptr, [&](const std::string&, const LetterRow& row) { found = found || row.letter.key == happening.key; });
  return found;
}

std::string Oracle::own_cents(std::size_t telling) const {
  return std::to_string(happening_of(telling).cents + (scenario_.tellings[telling].is_changed ? 1 : 0));
}

void Oracle::acknowledged(std::size_t telling, const Settlement& settlement) {
  const auto& happening = happening_of(telling);
  const bool set_aside = std::holds_alternative<SetAside>(settlement.verdict);
  if (set_aside || happening.kind == Kind::rejected) {
    if (!has_letter(happening)) accuse(happening.key + " was acknowledged, and no letter of it is kept");
    return;
  }
  const auto rows = rows_of("effects", happening.key);
  if (rows.empty()) return accuse(happening.key + " was acknowledged before its effect was committed");
  if (text_of(rows.front()[1]) != own_cents(telling))
    accuse(happening.key + " was acknowledged as done, with the effect of another body");
}

void Oracle::answered(std::size_t telling, const Settlement& settlement) {
  const auto& happening = happening_of(telling);
  const auto* done = std::get_if<Done>(&settlement.verdict);
  const auto rows = rows_of("effects", happening.key);
  if (!done) {
    const bool contested =
        happening.kind == Kind::rejected || (!rows.empty() && text_of(rows.front()[1]) != own_cents(telling));
    if (!contested) accuse("a caller of " + happening.key + " was told of a conflict that is none");
    return;
  }
  if (!done->answer_kept) return accuse("the answer for " + happening.key + " was not kept");
  if (rows.empty() && happening.kind != Kind::rejected)
    return accuse("a caller of " + happening.key + " was answered before the effect was committed");
  const auto text = std::to_string(done->answer.status) + " " + done->answer.body;
  const auto head = happening.key + ":" + own_cents(telling) + ":";
  if (!done->answer.body.starts_with(head)) return accuse("a caller of " + happening.key + " was answered: " + text);
  const auto first = answers_.emplace(happening.key, text).first->second;
  if (first != text) accuse("the answer for " + happening.key + " changed from " + first + " to " + text);
}

void Oracle::heard(const Process& process, const Call& call, const CallReport& report) {
  if (report.verdict == CallVerdict::succeeded && !report.outcome.reference.empty())
    heard_.push_back({&process, call.id, report.outcome.reference});
}

void Oracle::vanished(const Process& process) {
  std::erase_if(heard_, [&](const Heard& one) { return one.process == &process; });
}

bool Oracle::is_at_rest() const {
  bool rest = true;
  database_.intents.each(nullptr, [&](const std::string&, const IntentRow& row) {
    const auto& status = row.intent.status;
    rest = rest && (status.settled || status.state == IntentState::ambiguous || status.flagged);
  });
  database_.outbox.each(nullptr, [&](const std::string&, const OutboxRow&) { rest = false; });
  return rest;
}

std::string Oracle::unfinished() const {
  std::string all;
  database_.intents.each(nullptr, [&](const std::string& id, const IntentRow& row) {
    const auto& status = row.intent.status;
    if (status.settled && !status.flagged) return;
    all += "; intent " + id.substr(0, 6) + " of " + row.intent.reference + " (" + row.intent.effect + ") is " +
           std::string(intent_state_name(status.state)) + ", attempt " + std::to_string(status.attempt);
  });
  database_.outbox.each(nullptr, [&](const std::string&, const OutboxRow& row) {
    all += "; publication " + row.message.publication.body + " is not sent";
  });
  return all;
}

bool Oracle::waits_for_operator() const {
  bool waits = false;
  database_.intents.each(nullptr, [&](const std::string&, const IntentRow& row) {
    waits = waits || row.intent.status.state == IntentState::ambiguous || row.intent.status.flagged;
  });
  return waits;
}

void Oracle::look_at_the_end(const Provider& provider, const Mailbox& mailbox) {
  std::set<std::size_t> told;
  for (const auto& telling : scenario_.tellings) told.insert(telling.happening);
  for (const auto happening : told) look_at(scenario_.happenings[happening], provider);
  look_at_intents();
  look_at_evidence();
  look_at_mails(mailbox);
  look_at_a_calm_day(provider);
}

void Oracle::look_at(const Happening& happening, const Provider& provider) {
  const auto effects = rows_of("effects", happening.key).size();
  const std::size_t expected = happening.kind == Kind::rejected ? 0 : 1;
  if (effects != expected)
    accuse(happening.key + " has " + std::to_string(effects) + " effects, not " + std::to_string(expected));
  if (happening.kind == Kind::charge) look_at_step(provider, happening.key, false);
  if (happening.kind == Kind::chain) look_at_chain(happening, provider);
}

/// One call, which was settled once, as what it came to; says as what.
std::optional<std::string> Oracle::look_at_step(const Provider& provider, const std::string& reference,
                                                bool is_refund) {
  const auto& all = provider.charges();
  const auto charges = std::count_if(all.begin(), all.end(), [&](const auto& charge) {
    return charge.reference == reference && (charge.effect == "refund") == is_refund;
  });
  const std::string what = is_refund ? "refunded" : "charged";
  if (charges > 1) accuse(reference + " was " + what + " " + std::to_string(charges) + " times");
  const auto settlements = rows_of("settlements", is_refund ? reference + "/undone" : reference);
  if (settlements.size() != 1) {
    accuse(reference + (is_refund ? "'s refund" : "") + " was settled " + std::to_string(settlements.size()) +
           " times");
    return std::nullopt;
  }
  const auto state = text_of(settlements.front()[1]);
  if ((state == "succeeded") != (charges > 0))
    accuse(reference + " was settled as " + state + ", and " + what + " " + std::to_string(charges) + " times");
  return state;
}

/// A second step follows a first that went well; the first is undone where the second did not.
void Oracle::look_at_chain(const Happening& happening, const Provider& provider) {
  const auto first = look_at_step(provider, happening.key, false);
  const auto second_rows = rows_of("settlements", happening.key + "/2").size();
  const auto undone_rows = rows_of("settlements", happening.key + "/undone").size();
  if (first != "succeeded") {
    if (second_rows + undone_rows > 0) accuse("the chain of " + happening.key + " went on after a step that failed");
    return;
  }
  if (look_at_step(provider, happening.key + "/2", false) == "failed") {
    look_at_step(provider, happening.key, true);
  } else if (undone_rows > 0) {
    accuse(happening.key + " was undone though its chain went well");
  }
}

void Oracle::look_at_intents() {
  std::set<RecordId> with_intents;
  database_.intents.each(nullptr, [&](const std::string& id, const IntentRow& row) {
    const auto& status = row.intent.status;
    with_intents.insert(row.intent.record);
    if (!status.settled || status.flagged) accuse("intent " + id.substr(0, 6) + " was forgotten");
    const auto* record = database_.records.find(row.intent.record, nullptr);
    if (!record || record->open) accuse("the record of intent " + id.substr(0, 6) + " is gone, or open at rest");
  });
  for (const auto& happening : scenario_.happenings) {
    if ((happening.kind != Kind::charge && happening.kind != Kind::chain) || rows_of("effects", happening.key).empty())
      continue;
    if (!std::any_of(with_intents.begin(), with_intents.end(),
                     [&](const RecordId& id) { return id.key.bytes() == happening.key; }))
      accuse("the intent of " + happening.key + " is gone");
  }
}

/// Whatever a process that lives was told of a charge is kept.
void Oracle::look_at_evidence() {
  for (const auto& heard : heard_) {
    if (heard.process->frozen_until + time_to_write > world_.now()) continue;
    bool kept = false;
    database_.intents.each(nullptr, [&](const std::string& id, const IntentRow& row) {
      kept = kept || (id == heard.intent && row.intent.outcome && row.intent.outcome->reference == heard.reference);
    });
    database_.events.each(nullptr, [&](std::int64_t, const EventRow& row) {
      const auto& evidence = row.event.evidence;
      kept = kept || (row.intent.hex == heard.intent && evidence && evidence->reference == heard.reference);
    });
    if (!kept) accuse("that " + heard.reference + " was charged was heard, and is written nowhere");
  }
}

void Oracle::look_at_mails(const Mailbox& mailbox) {
  std::map<std::string, std::vector<std::string>> received;  // first receipts, by order key
  std::set<std::string> seen;
  for (const auto& mail : mailbox.mails())
    if (seen.insert(mail.id).second) received[mail.body.substr(0, 1)].push_back(mail.body);
  std::map<std::string, std::map<std::int64_t, std::string>> sent;  // by their order in the database
  database_.user_tables.at("mails").rows.each(nullptr, [&](std::int64_t, const std::vector<Value>& row) {
    const auto order_key = text_of(row[0]);
    sent[order_key][std::get<std::int64_t>(row[1])] = order_key + std::to_string(std::get<std::int64_t>(row[1]));
  });
  for (const auto& [order_key, messages] : sent) {
    std::vector<std::string> expected;
    for (const auto& [number, text] : messages) expected.push_back(text);
    const auto& got = received[order_key];
    if (got == expected) continue;
    std::string said;
    for (const auto& text : got) said += " " + text;
    accuse("publications of order " + order_key + ", " + std::to_string(expected.size()) + " of them, came as" + said);
  }
}

/// Where nothing goes wrong, nothing is done twice and nobody is asked.
void Oracle::look_at_a_calm_day(const Provider& provider) {
  if (world_.struck_in_all() > 0) return;
  std::int64_t intents = 0;
  database_.intents.each(nullptr, [&](const std::string&, const IntentRow&) { ++intents; });
  if (provider.calls() != intents)
    accuse("on a calm day " + std::to_string(intents) + " intents took " + std::to_string(provider.calls()) + " calls");
  database_.events.each(nullptr, [&](std::int64_t, const EventRow& row) {
    if (row.event.kind == "ambiguous" || row.event.kind == "resolved" || row.event.kind == "asked")
      accuse("on a calm day an intent was " + row.event.kind);
  });
}

}  // namespace semel::sim
