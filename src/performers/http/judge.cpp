#include "performers/http/judge.hpp"

#include <algorithm>
#include <set>

#include "net/passed_head.hpp"
#include "performers/http/retry_after.hpp"
#include "values/body_not_kept.hpp"

namespace semel::http {

namespace {

using Reach = net::Returned::Reach;

bool is_success(int status) { return status >= 200 && status < 300; }

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

/// Without what is one connection's (RFC 9110, 7.6.1). A body that is whole is framed anew by whoever sends it on.
Attributes end_to_end_headers(const Attributes& headers) {
  const auto connection = net::connection_names(headers);
  Attributes passed;
  for (const auto& [name, value] : headers.entries())
    if (!net::is_hop_by_hop(name, connection) && Attributes{{name, ""}}.count("Content-Length") == 0)
      passed.add(name, value);
  return passed;
}

/// An answer that ended before its end (RFC 9112, 8): not one to act on, nor to hand out. One whose body was only too
/// long for us to take is not among them.
bool broke_off(const net::Returned& returned, const Asked& asked) {
  return returned.cut && returned.body.size() < asked.body_bytes_max;
}

/// What an answer holds, cookies too: they are for the first caller. What is stored of it is chosen by the engine. A
/// part of a body is no body.
CallReport answered(CallVerdict verdict, const net::Returned& returned, std::chrono::system_clock::time_point now) {
  CallReport report{.verdict = verdict};
  report.outcome.answer.status = returned.status;
  if (!returned.cut) report.outcome.answer.body = returned.body;
  report.outcome.answer.headers = end_to_end_headers(returned.headers);
  report.outcome.detail = "status " + std::to_string(returned.status);
  report.retry_after = retry_after(returned.headers, now);
  return report;
}

CallVerdict verdict_of_status(const net::Returned& returned) {
  switch (returned.status) {
    case 301:
    case 307:
    case 308:
    case 401:
    case 403:
    case 404:
      return CallVerdict::refused;
    case 408:
    case 425:
    case 429:
      return CallVerdict::not_done;
    case 409:
      return CallVerdict::unfinished;
    case 503:
      return returned.headers.find("Retry-After") ? CallVerdict::not_done : CallVerdict::unknown;
    default:
      if (is_success(returned.status)) return CallVerdict::succeeded;
      return returned.status >= 400 && returned.status < 500 ? CallVerdict::failed : CallVerdict::unknown;
  }
}

CallReport half_answered(const net::Returned& returned, std::chrono::system_clock::time_point now) {
  auto report = answered(CallVerdict::unknown, returned, now);
  report.outcome.detail += "; its body is not whole: " + returned.detail;
  return report;
}

/// Whether what came of a call is told by the body, and not by the status alone. Every shape has a place of an id, so
/// that one is asked for only where it was chosen.
bool tells_in_the_body(const Shape& answer) {
  return !answer.status.empty() || !answer.compared.empty() || !answer.object.empty() || answer.id != Shape{}.id;
}

/// A success that the body had to confirm, and did not.
bool is_unconfirmed(const ProviderProfile& profile, const net::Returned& returned, bool by_rule) {
  if (!is_success(returned.status) || !tells_in_the_body(profile.answer)) return false;
  return !(by_rule && returned.status == 204);  // never has a body (RFC 9110, 15.3.5), and somebody says what it means
}

/// An answer's body where it is whole and JSON; null otherwise.
std::shared_ptr<const json::Node> read_body(const net::Returned& returned) {
  if (returned.cut) return nullptr;
  auto parsed = json::parse(returned.body);
  return std::holds_alternative<json::Problem>(parsed) ? nullptr : std::get<0>(std::move(parsed));
}

bool matches(const AnswerRule& rule, const net::Returned& returned, const json::Node* body) {
  if (returned.status < rule.status_from || returned.status > rule.status_to) return false;
  if (!rule.header.empty()) {
    const auto value = returned.headers.find(rule.header);
    if (!value || (!rule.header_value.empty() && !same(Comparison::As::text_without_case, *value, rule.header_value)))
      return false;
  }
  if (rule.pointer.empty() && rule.values.empty()) return true;
  if (!body) return false;
  for (const auto* node : select(*body, rule.pointer)) {
    const auto text = text_of(node);
    if (rule.values.empty() ? node->kind != json::Kind::null : text && contains(rule.values, *text)) return true;
  }
  return false;
}

/// What differs between what was asked and what is there; empty where nothing does. No values: they are the message's.
/// `strict`: what was asked for and is not there differs.
std::string difference(const Shape& shape, const Asked& asked, const json::Node& object, bool strict) {
  const auto reference = shape.reference.empty() ? std::nullopt : text_of(select_first(object, shape.reference));
  if (reference && !asked.reference.empty() && *reference != asked.reference) return "the reference";
  for (const auto& one : shape.compared) {
    const auto wanted = asked.body.text(one.asked);
    if (!wanted) continue;
    const auto there = text_of(select_first(object, one.found));
    if (there ? !same(one.as, *wanted, *there) : strict) return one.asked;
  }
  return {};
}

/// By what an object of the provider's says of itself.
CallReport judge_object(const Shape& shape, const Asked& asked, const json::Node& object, CallReport report,
                        bool strict) {
  report.outcome.reference = text_of(select_first(object, shape.id)).value_or("");
  const auto status = shape.status.empty() ? std::nullopt : text_of(select_first(object, shape.status));
  if (const auto differs = difference(shape, asked, object, strict); !differs.empty()) {
    report.verdict = CallVerdict::mismatch;
    report.outcome.detail = "what the provider has differs from what was asked in " + differs;
    return report;
  }
  if (status) report.outcome.detail += ", " + *status;
  if (shape.status.empty())
    report.verdict = CallVerdict::succeeded;
  else if (!status)
    report.verdict = CallVerdict::unknown;
  else if (contains(shape.failed, *status))
    report.verdict = CallVerdict::failed;
  else if (contains(shape.pending, *status))
    report.verdict = CallVerdict::unfinished;
  else
    report.verdict = contains(shape.succeeded, *status) ? CallVerdict::succeeded : CallVerdict::unknown;
  return report;
}

CallVerdict verdict_of_meaning(Meaning meaning) {
  switch (meaning) {
    case Meaning::succeeded:
      return CallVerdict::succeeded;
    case Meaning::failed:
      return CallVerdict::failed;
    case Meaning::refused:
      return CallVerdict::refused;
    case Meaning::not_done:
      return CallVerdict::not_done;
    case Meaning::unfinished:
      return CallVerdict::unfinished;
    case Meaning::mismatch:
      return CallVerdict::mismatch;
    default:
      return CallVerdict::unknown;
  }
}

Judgement judge_rule(const ProviderProfile& profile, const AnswerRule& rule, const json::Node* body,
                     CallReport report) {
  switch (rule.meaning) {
    case Meaning::look_up:
      report.verdict = profile.by_reference ? CallVerdict::unknown : CallVerdict::mismatch;
      report.outcome.detail += "; a repeat of the call would tell nothing new";
      return {std::move(report), profile.by_reference ? Judgement::Ask::by_reference : Judgement::Ask::nothing};
    case Meaning::existing: {
      const auto id = body ? text_of(select_first(*body, rule.id)) : std::nullopt;
      report.verdict = CallVerdict::unknown;
      report.outcome.detail += "; something was made under this key before";
      if (!id || !profile.by_id) return {std::move(report)};
      return {std::move(report), Judgement::Ask::by_id, *id};
    }
    default:
      report.verdict = verdict_of_meaning(rule.meaning);
      return {std::move(report)};
  }
}

/// The provider's id of what it made, and whether it is what was asked for.
CallReport with_object(const ProviderProfile& profile, const Asked& asked, const json::Node& body, CallReport report) {
  const auto* object = select_first(body, profile.answer.object);
  if (!object) return report;
  report.outcome.reference = text_of(select_first(*object, profile.answer.id)).value_or("");
  if (const auto differs = difference(profile.answer, asked, *object, false); !differs.empty()) {
    report.verdict = CallVerdict::mismatch;
    report.outcome.detail = "what the provider has differs from what was asked in " + differs;
    return report;
  }
  const auto status = text_of(select_first(*object, profile.answer.status)).value_or("");
  if (!profile.answer.status.empty() &&
      std::ranges::find(profile.answer.failed, status) != profile.answer.failed.end()) {
    report.verdict = CallVerdict::failed;
    report.outcome.detail += report.outcome.detail.empty() ? status : ", " + status;
  }
  return report;
}

CallReport unanswered(const net::Returned& returned) {
  const bool sent = returned.reach != Reach::not_sent;
  return report_of(sent ? CallVerdict::unknown : CallVerdict::not_done, returned.detail);
}

/// The elements that count; of two with one id, the first.
std::vector<const json::Node*> objects_of(const Lookup& lookup, const Asked& asked, const json::Node& body) {
  std::vector<const json::Node*> found;
  std::set<std::string> ids;
  const auto* list = lookup.is_list ? select_first(body, lookup.list) : nullptr;
  if (!list) return found;
  for (const auto& element : list->children) {
    const auto* object = select_first(element, lookup.shape.object);
    if (!object) continue;
    const auto reference = text_of(select_first(*object, lookup.shape.reference));
    if (!reference || *reference != asked.reference) continue;
    const auto status = text_of(select_first(*object, lookup.shape.status));
    if (status && contains(lookup.shape.ignored, *status)) continue;
    const auto id = text_of(select_first(*object, lookup.shape.id));
    if (!id || ids.insert(*id).second) found.push_back(object);
  }
  return found;
}

std::optional<std::string> next_page(const Lookup& lookup, const json::Node& body, int page) {
  const auto text = text_of(select_first(body, lookup.page_pointer));
  if (!text || text->empty()) return std::nullopt;
  if (lookup.paging == Lookup::Paging::cursor) return text;
  if (lookup.paging != Lookup::Paging::number) return std::nullopt;
  const auto next = std::to_string(page + 1);
  const bool more = text->size() > next.size() || (text->size() == next.size() && *text >= next);
  return more ? std::optional(next) : std::nullopt;
}

Page judge_list(const Lookup& lookup, const Asked& asked, const json::Node& body, CallReport report, int page) {
  const auto objects = objects_of(lookup, asked, body);
  if (objects.size() > 1) {
    report.verdict = CallVerdict::mismatch;
    report.outcome.detail = "the provider has " + std::to_string(objects.size()) + " under this reference";
    return {std::move(report), true};
  }
  if (objects.size() == 1) return {judge_object(lookup.shape, asked, *objects.front(), std::move(report), true), true};
  report.verdict = CallVerdict::not_found;
  report.outcome.detail = "the provider shows nothing under this reference";
  const auto* list = select_first(body, lookup.list);
  const bool unread =
      lookup.paging == Lookup::Paging::single && text_of(select_first(body, lookup.page_pointer)) == "true";
  if (!list || list->kind != json::Kind::array || unread) {
    report.verdict = CallVerdict::unknown;
    report.outcome.detail = "the provider's list could not be read whole";
    return {std::move(report)};
  }
  return {std::move(report), false, next_page(lookup, body, page)};
}

}  // namespace

CallReport report_of(CallVerdict verdict, std::string detail) {
  CallReport report{.verdict = verdict};
  report.outcome.answer.status = 0;
  report.outcome.detail = std::move(detail);
  return report;
}

CallReport judge_status(const net::Returned& returned, std::chrono::system_clock::time_point now) {
  if (returned.reach != Reach::answered) return unanswered(returned);
  return answered(verdict_of_status(returned), returned, now);
}

Judgement judge_answer(const ProviderProfile& profile, const Asked& asked, const net::Returned& returned,
                       std::chrono::system_clock::time_point now) {
  if (returned.reach != Reach::answered) return {unanswered(returned)};
  if (broke_off(returned, asked)) return {half_answered(returned, now)};
  const auto body = read_body(returned);
  auto report = answered(verdict_of_status(returned), returned, now);
  if (returned.cut) report.outcome.detail.append("; ").append(body_not_kept);
  bool by_rule = false;
  for (const auto& rule : profile.rules) {
    if (!matches(rule, returned, body.get())) continue;
    if (rule.meaning != Meaning::succeeded) return judge_rule(profile, rule, body.get(), std::move(report));
    report.verdict = CallVerdict::succeeded;
    by_rule = true;
    break;
  }
  if (report.verdict != CallVerdict::succeeded) return {std::move(report)};
  if (body) return {with_object(profile, asked, *body, std::move(report))};
  if (is_unconfirmed(profile, returned, by_rule)) {
    report.verdict = CallVerdict::unknown;
    report.outcome.detail += "; what came of it could not be read from the body";
  }
  return {std::move(report)};
}

Page judge_page(const Lookup& lookup, const Asked& asked, const net::Returned& returned, int page,
                std::chrono::system_clock::time_point now) {
  if (returned.reach != Reach::answered) return {report_of(CallVerdict::unknown, "not looked up: " + returned.detail)};
  auto report = answered(CallVerdict::unknown, returned, now);
  if (returned.status == 404 && !lookup.is_list) {
    report.verdict = CallVerdict::not_found;
    return {std::move(report)};
  }
  const auto body = is_success(returned.status) ? read_body(returned) : nullptr;
  if (!body) {
    report.outcome.detail = "not looked up: " + report.outcome.detail;
    return {std::move(report)};
  }
  if (lookup.is_list) return judge_list(lookup, asked, *body, std::move(report), page);
  const auto* object = select_first(*body, lookup.shape.object);
  if (!object) {
    report.outcome.detail = "not looked up: the answer has not what was looked for";
    return {std::move(report)};
  }
  return {judge_object(lookup.shape, asked, *object, std::move(report), true), true};
}

}  // namespace semel::http
