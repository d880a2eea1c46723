// The verdicts as a table, as JSON and as JUnit's XML.
#include <fmt/format.h>

#include <boost/json.hpp>

#include "output.hpp"
#include "prove/prove.hpp"

namespace semel::prove {
namespace {

std::string answers_text(const Verdict& verdict) {
  if (!verdict.seen.same_answers) return "-";
  return *verdict.seen.same_answers ? "same" : "differ";
}

std::string verdict_text(const Verdict& verdict) {
  if (!verdict.not_tried.empty()) return "not tried: " + verdict.not_tried;
  return (verdict.broken() ? "BROKEN: " : "") + std::string(symptom_text(verdict.seen.symptom));
}

std::string details(const Verdict& verdict) {
  if (!verdict.same_as.empty()) return "  What " + verdict.same_as + " shows comes first: mend that, and look again.\n";
  std::string text;
  int number = 0;
  for (const auto& line : verdict.seen.sequence)
    text += line.starts_with(' ') ? "     " + line + "\n" : fmt::format("  {}. {}\n", ++number, line);
  return text + "  " + verdict.advice + "\n";
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

}  // namespace

std::string verdicts_text(const std::vector<Verdict>& verdicts) {
  std::vector<std::vector<std::string>> rows = {{"attack", "trials", "expected", "effects", "answers", "verdict"}};
  std::string broken;
  for (const auto& verdict : verdicts) {
    const bool tried = verdict.not_tried.empty();
    const auto number = [&](long long value) { return tried ? std::to_string(value) : std::string("-"); };
    rows.push_back({verdict.attack, number(verdict.trials), number(verdict.seen.expected), number(verdict.seen.effects),
                    answers_text(verdict), verdict_text(verdict)});
    if (verdict.broken()) broken += "\n" + verdict.attack + ": " + verdict.what + "\n" + details(verdict);
  }
  return app::table(rows) + broken;
}

boost::json::value verdicts_json(const std::vector<Verdict>& verdicts, std::uint64_t seed) {
  boost::json::array attacks;
  for (const auto& verdict : verdicts) {
    boost::json::object one{{"attack", verdict.attack}, {"what", verdict.what}};
    one["verdict"] = verdict.not_tried.empty() ? (verdict.broken() ? "broken" : "held") : "not tried";
    one["trials"] = verdict.trials;
    if (verdict.not_tried.empty()) {
      one["effects_expected"] = verdict.seen.expected;
      one["effects"] = verdict.seen.effects;
      one["answers"] = answers_text(verdict);
    }
    one["why"] = verdict.not_tried.empty() ? std::string(symptom_text(verdict.seen.symptom)) : verdict.not_tried;
    if (!verdict.same_as.empty()) one["same_as"] = verdict.same_as;
    if (verdict.broken()) {
      one["sequence"] = boost::json::array(verdict.seen.sequence.begin(), verdict.seen.sequence.end());
      one["advice"] = verdict.advice;
    }
    attacks.push_back(std::move(one));
  }
  return boost::json::object{{"seed", seed}, {"attacks", std::move(attacks)}};
}

std::string verdicts_junit(const std::vector<Verdict>& verdicts) {
  int broken = 0;
  int not_tried = 0;
  std::string cases;
  for (const auto& verdict : verdicts) {
    cases += fmt::format(R"(  <testcase classname="semel.prove" name="{}">)", verdict.attack);
    if (!verdict.not_tried.empty()) {
      ++not_tried;
      cases += fmt::format(R"(<skipped message="{}"/>)", escaped(verdict.not_tried));
    } else if (verdict.broken()) {
      ++broken;
      cases += fmt::format(R"(<failure message="{}">{}</failure>)", escaped(symptom_text(verdict.seen.symptom)),
                           escaped(details(verdict)));
    }
    cases += "</testcase>\n";
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"semel prove\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n{}</testsuite>\n",
      verdicts.size(), broken, not_tried, cases);
}

}  // namespace semel::prove
