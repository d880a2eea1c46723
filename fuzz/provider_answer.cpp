// What providers answer to calls and lookups, under every built-in profile.
//
//   input = profile, reach, cut: 1 byte each; status, 2 bytes; what was asked LF headers, a line each; LF; body
#include "headers.hpp"
#include "performers/http/judge.hpp"

namespace semel::fuzz {
namespace {

using Reach = net::Returned::Reach;

constexpr std::string_view reference = "o-1";
const std::chrono::system_clock::time_point now{std::chrono::seconds(1'700'000'000)};

net::Returned returned_by(Input& input, std::string& asked) {
  static constexpr Reach reaches[] = {Reach::answered, Reach::answered, Reach::unknown, Reach::not_sent};
  net::Returned returned{.reach = reaches[input.below(4)]};
  returned.cut = input.below(8) == 1;
  const auto hundreds = input.below(10);
  returned.status = static_cast<int>(100 * hundreds + input.below(100));
  asked = input.line();
  returned.headers = take_headers(input);
  returned.body = input.rest();
  return returned;
}

/// Of any profile: what may have happened is never taken for what did not.
void check(const CallReport& report, const net::Returned& returned) {
  const auto verdict = report.verdict;
  if (returned.reach == Reach::not_sent) promise(verdict == CallVerdict::not_done, "what was not sent was not done");
  if (returned.reach == Reach::unknown) promise(verdict == CallVerdict::unknown, "without an answer nothing is known");
  if (returned.cut) promise(verdict != CallVerdict::mismatch, "half a body contradicts nothing");
  if (report.retry_after)
    promise(report.retry_after->count() >= 0 && *report.retry_after <= std::chrono::hours(24),
            "Retry-After is from nothing to a day");
}

/// The table in <semel/performers/http.hpp>, of a provider that nobody describes.
CallVerdict by_the_table(const net::Returned& returned) {
  const int status = returned.status;
  if (status >= 200 && status <= 299) return CallVerdict::succeeded;
  for (const int one : {301, 307, 308, 401, 403, 404})
    if (status == one) return CallVerdict::refused;
  for (const int one : {408, 425, 429})
    if (status == one) return CallVerdict::not_done;
  if (status == 503 && returned.headers.count("Retry-After") > 0) return CallVerdict::not_done;
  if (status == 409) return CallVerdict::unfinished;
  return status >= 400 && status <= 499 ? CallVerdict::failed : CallVerdict::unknown;
}

void check_lookup(const std::optional<http::Lookup>& lookup, const http::Asked& asked, const net::Returned& returned) {
  if (!lookup) return;
  const auto page = http::judge_page(*lookup, asked, returned, 1, now);
  const auto verdict = page.report.verdict;
  if (returned.reach != Reach::answered || returned.cut)
    promise(verdict == CallVerdict::unknown || (returned.status == 404 && !lookup->is_list),
            "a lookup without a whole answer tells nothing");
  if (page.next) promise(!page.found && verdict == CallVerdict::not_found, "only where nothing was found one reads on");
  if (verdict == CallVerdict::not_found) promise(!page.found, "what was not found was not found");
}

}  // namespace

void try_one(Input input) {
  const auto& profiles = http::built_in_profiles();
  const auto choice = input.below(static_cast<unsigned>(profiles.size()) + 1);
  const auto profile = choice < profiles.size() ? profiles[choice] : http::ProviderProfile{};
  std::string request;
  const auto returned = returned_by(input, request);
  const http::Body body(request, "");
  const http::Asked asked{body, std::string(reference)};
  const auto judged = http::judge_answer(profile, asked, returned, now);
  check(judged.report, returned);
  const bool is_plain = choice == profiles.size() && returned.reach == Reach::answered;
  if (is_plain && !returned.cut && asked.body.root() == nullptr)
    promise(judged.report.verdict == by_the_table(returned), "a provider that nobody describes is judged by the table");
  check_lookup(profile.by_reference, asked, returned);
  check_lookup(profile.by_id, asked, returned);
}

}  // namespace semel::fuzz
